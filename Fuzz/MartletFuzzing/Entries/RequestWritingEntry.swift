import MartletContent
import MartletWire

extension FuzzEntry {
    /// Requests that the client writes.
    ///
    /// The payload, split at bytes 0xFE, is method, target, Host, and then names and values in turn. Control 0: bit 0
    /// selects HTTP/1.0, bit 1 sends the payload as a chunked body, and bit 2 with a length.
    ///
    /// The server machine reads an accepted request as exactly this one request. A rejected request leaves no bytes to
    /// send.
    static let requestWriting = FuzzEntry("request-writing") { (bytes) throws(FuzzFinding) in
        let draft = RequestDraft(FuzzInput(bytes))
        var encoder = RequestEncoder()
        do throws(WireError) {
            try draft.write(to: &encoder)
        } catch {
            try require(error.isLocalError, "a request is refused as if it had been received: \(error)")
            try require(encoder.bytes.isEmpty, "a refused request leaves \(encoder.bytes)")
            return
        }
        var wire = encoder.bytes
        do throws(WireError) {
            var chunks = ChunkEncoder()
            let isChunked = draft.framing == .chunked
            wire += isChunked ? chunks.chunk(draft.body).bytes : draft.body
            if isChunked { wire += try chunks.lastChunk() }
        } catch {
            throw FuzzFinding(
                "a last chunk without trailers is refused: \(error)")
        }
        let reading = RequestReading(wire, .whole(wire.count), .default)
        // The draft can contain a framing field without a body, or contradict HTTP/1.0. Neither is a second request
        // yet.
        if draft.isFramedByHand || reading.error?.code == .transferEncodingInHTTP10 {
            return try require(reading.requests.count <= 1, "one request became \(reading.requests.count)")
        }
        try require(
            reading.error == nil, "a written request is refused: \(String(describing: reading.error))")
        try require(reading.requests.count == 1, "one request became \(reading.requests.count)")
        guard let request = reading.requests.first else { return }
        try require(
            request.isComplete && request.body == draft.body, "the body reads back as \(request.body)")
        try require(request.head == draft.head, "\(draft.head) reads back as \(request.head)")
    }
}

/// A request that is to be written.
private struct RequestDraft {
    let method: String
    let target: String
    let host: String
    let fields: [(name: String, value: [UInt8])]
    let version: WireVersion
    let framing: BodyFraming
    let body: [UInt8]

    init(_ input: FuzzInput) {
        let parts = input.payload.split(separator: 0xFE, omittingEmptySubsequences: false)
        func text(_ index: Int) -> String {
            parts.indices.contains(index) ? String(decoding: parts[index], as: UTF8.self) : ""
        }
        method = text(0)
        target = text(1)
        host = text(2)
        fields = stride(from: 3, to: parts.count - 1, by: 2).map { (text($0), Array(parts[$0 + 1])) }
        version = input.isSet(0, at: 0) ? .http10 : .http11
        if input.isSet(1, at: 0) {
            framing = .chunked
        } else {
            framing = input.isSet(2, at: 0) ? .length(UInt64(input.payload.count)) : .none
        }
        body = framing == .none ? [] : input.payload
    }

    func write(to encoder: inout RequestEncoder) throws(WireError) {
        try encoder.begin(method: method, target: target, version: version)
        try encoder.hostField(host)
        for field in fields { try encoder.field(name: field.name, rawValue: field.value) }
        try encoder.framing(framing)
        encoder.end()
    }

    /// Whether a field of the draft specifies the framing of the body.
    var isFramedByHand: Bool {
        fields.contains { ["content-length", "transfer-encoding"].contains($0.name.lowercased()) }
    }

    /// The head that a server must read.
    var head: RequestHead {
        var block = FieldBlock()
        block.append(name: Array("Host".utf8), value: Array(ByteClass.trimmed(Array(host.utf8)[...])))
        for field in fields {
            block.append(name: Array(field.name.utf8), value: Array(ByteClass.trimmed(field.value[...])))
        }
        switch framing {
        case .chunked: block.append(name: "Transfer-Encoding", value: "chunked")
        case .length(let length): block.append(name: "Content-Length", value: String(length))
        case .none, .untilClose: break
        }
        return RequestHead(method: method, target: target, version: version, fields: block)
    }
}
