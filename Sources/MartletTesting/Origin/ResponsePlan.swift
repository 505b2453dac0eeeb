import MartletWire

/// How a response goes onto the wire: decided from it, from its request, and from what the connection allows.
struct ResponsePlan {
    /// What is known of the request.
    struct Request {
        let method: String
        let version: WireVersion
        /// Whether the client, and what is left of the request, allow another request.
        let mayPersist: Bool
    }

    /// Whether the body is sent at all.
    let sendsBody: Bool
    /// How the body is delimited.
    let framing: OriginBodyWriter.Framing
    /// Whether the connection lives on.
    let persists: Bool
    private let declared: BodyFraming

    init(response: OriginResponse, request: Request) {
        let allowsBody =
            request.method != "HEAD" && response.status >= 200 && response.status != 204
            && response.status != 304
        let declaresFraming =
            response.status >= 200 && response.status != 204 && response.status != 304
        let length = response.body.length
        sendsBody = allowsBody
        var isDelimited = true
        if response.fields.contains("Content-Length") || response.fields.contains("Transfer-Encoding") {
            declared = .none
            framing = .raw
            let matches = length.map { "\($0)" } == response.fields["Content-Length"]
            isDelimited = !allowsBody || matches || response.fields.contains("Transfer-Encoding")
        } else {
            switch (response.framing, length) {
            case (.automatic, .some(let length)):
                declared = declaresFraming ? .length(length) : .none
                framing = .length(length)
            case (.chunked(let size), _) where request.version == .http11 && !response.claimsHTTP10:
                declared = declaresFraming ? .chunked : .none
                framing = .chunked(size: size)
            case (.automatic, nil) where request.version == .http11 && !response.claimsHTTP10:
                declared = declaresFraming ? .chunked : .none
                framing = .chunked(size: nil)
            default:
                declared = .untilClose
                framing = .raw
                isDelimited = !allowsBody
            }
        }
        persists = request.mayPersist && !response.closesConnection && isDelimited
    }

    /// The bytes of the head.
    /// - Parameter date: The value of the Date field.
    /// - Throws: for a status, phrase or field that cannot be sent.
    func head(of response: OriginResponse, request: Request, date: String) throws(WireError) -> [UInt8] {
        var encoder = ResponseEncoder()
        try encoder.begin(
            status: response.status, reason: response.reason ?? StatusPhrase.of(response.status),
            version: response.claimsHTTP10 ? .http10 : .http11)
        if !response.fields.contains("Date") { try encoder.field(name: "Date", value: date) }
        for (name, value) in response.fields { try encoder.field(name: name, value: value) }
        try encoder.framing(declared)
        if !response.fields.contains("Connection") {
            if !persists {
                try encoder.field(name: "Connection", value: "close")
            } else if request.version == .http10 {
                try encoder.field(name: "Connection", value: "keep-alive")
            }
        }
        encoder.end()
        return encoder.bytes
    }

    /// The bytes of an interim response.
    static func head(of response: InterimResponse) throws(WireError) -> [UInt8] {
        var encoder = ResponseEncoder()
        try encoder.begin(status: response.status, reason: StatusPhrase.of(response.status))
        for (name, value) in response.fields { try encoder.field(name: name, value: value) }
        encoder.end()
        return encoder.bytes
    }
}
