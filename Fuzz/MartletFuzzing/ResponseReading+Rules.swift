import MartletContent
import MartletWire

extension ResponseReading {
    /// Checks the properties of every reading of any bytes.
    func check(_ scene: ResponseScene, _ bytes: [UInt8]) throws(FuzzFinding) {
        try require(isComplete != (error != nil), "a response is neither complete nor refused, or both")
        try require(
            informational.count <= scene.limits.informationalResponseLimit, "too many interim responses")
        for interim in informational {
            try require(
                interim.isInformational && interim.status != 101, "status \(interim.status) is interim")
            try FieldRules.check(interim.fields)
        }
        guard let head, let framing else {
            try require(!isComplete && body.isEmpty, "there is a body without a head")
            return
        }
        try FieldRules.check(head.fields)
        try require(!head.isInformational, "status \(head.status) is final")
        try checkBody(framing, bytes)
        try checkFraming(head, framing, scene)
        if isReusable { try checkReuse(head, framing, bytes) }
    }

    private func checkBody(_ framing: BodyFraming, _ bytes: [UInt8]) throws(FuzzFinding) {
        switch framing {
        case .none:
            try require(body.isEmpty && isComplete, "there is a body where none may be")
        case .length(let length):
            try require(UInt64(body.count) <= length, "\(body.count) bytes came of a body of \(length)")
            try require(
                isComplete == (UInt64(body.count) == length),
                "complete after \(body.count) of \(length) bytes")
            try require(bytes[bodyStart...].starts(with: body), "the body is not what came")
        case .untilClose:
            try require(bytes[bodyStart...].elementsEqual(body), "the body is not all that came")
        case .chunked:
            guard isComplete else { return }
            let plain = PlainChunkedBody(bytes[bodyStart...])
            try require(plain?.payload == body, "the payload is \(body), read plainly \(plain as Any)")
            try require(plain.map { bodyStart + $0.byteCount } == byteCount, "the body ends at \(byteCount)")
            if let trailers { try FieldRules.check(trailers) }
        }
    }

    private func checkFraming(
        _ head: ResponseHead, _ framing: BodyFraming, _ scene: ResponseScene
    ) throws(FuzzFinding) {
        let isBodiless = scene.method == "HEAD" || head.status == 204 || head.status == 304
        try require(!isBodiless || framing == .none, "\(scene.method) \(head.status) has a body")
        let isTunnel = scene.method == "CONNECT" && head.status < 300
        if isBodiless || isTunnel { return }
        let isChunked = head.fields.contains("Transfer-Encoding")
        let hasLength = head.fields.contains("Content-Length")
        try require(isChunked == (framing == .chunked), "chunked or not: \(framing)")
        try require(isChunked || hasLength == (framing != .untilClose), "with a length or not: \(framing)")
        try require(
            !(isChunked && hasLength && scene.limits.isStrict), "an ambiguous head passed strict limits")
    }

    private func checkReuse(
        _ head: ResponseHead, _ framing: BodyFraming, _ bytes: [UInt8]
    ) throws(FuzzFinding) {
        try require(isComplete && error == nil, "a connection lives on after an incomplete response")
        try require(
            byteCount == bytes.count, "a connection lives on with \(bytes.count - byteCount) bytes unread")
        try require(framing != .untilClose, "a connection lives on after its own end")
        try require(!head.fields.contains("Connection", token: "close"), "a connection lives on after close")
        if framing == .chunked {
            try require(
                !head.fields.contains("Content-Length"), "a connection lives on after an ambiguous head")
        }
    }
}
