/// Turns a call into the request that an exchange sends: the fields in their final form, the framing, the bytes of the head.
///
/// Values that could split the request, or frame its body in two ways, are rejected here, before a byte is written. `HTTPFields`
/// replaces CR, LF and NUL by spaces when a value is set: ``HTTPHeaders`` rejects them before.
struct RequestComposer {
    let call: Call
    /// Whether `Expect: 100-continue` may be sent; not after a 417.
    var allowsExpectation = true
    /// The credentials for the proxy that the request is handed to.
    var proxyAuthorization: String?

    /// A body ready to be sent.
    struct PreparedBody: Sendable {
        var body: OutgoingBody
        var length: UInt64?

        var isChunked: Bool { if case .source(_, nil) = body { true } else { false } }

        /// Sends the body in chunks, whatever its length.
        mutating func makeChunked() {
            switch body {
            case .none: return
            case .bytes(let bytes): body = .source(BytesSource(bytes), length: nil)
            case .source(let source, _): body = .source(source, length: nil)
            }
            length = nil
        }
    }

    func compose(_ prepared: PreparedBody) throws(HTTPError) -> ExchangeRequest {
        do throws(WireError) { return try encode(prepared) } catch { throw refusal(error.description) }
    }

    private func refusal(_ message: String) -> HTTPError { call.error(.invalidRequest, .preparing, message) }

    private func encode(_ prepared: PreparedBody) throws(WireError) -> ExchangeRequest {
        let fields = call.fields
        let isChunked = prepared.isChunked
        let version: WireVersion = call.options.version == .http10 ? .http10 : .http11
        var encoder = RequestEncoder()
        try encoder.begin(method: call.method.rawValue, target: call.requestTarget, version: version)
        if !fields.isEmpty, let host = fields[.hostField] {
            try encoder.hostField(host)
        } else if !isOmitted(.hostField) {
            try encoder.field(name: "Host", value: call.url.hostFieldValue)
        }
        var expectsContinue = try encodeFields(prepared, &encoder)
        if call.supplement?.asksFirst == true, allowsExpectation, version == .http11, !expectsContinue,
            prepared.length != 0, fields[.expect] == nil, !isOmitted(.expect)
        {
            try encoder.field(name: "Expect", value: "100-continue")
            expectsContinue = true
        }
        if let added = call.supplement?.cacheFields {
            for index in added.indices { try encoder.field(of: added, at: index) }
        }
        if let proxyAuthorization { try encoder.field(name: "Proxy-Authorization", value: proxyAuthorization) }
        if let type = call.body.contentType, fields[.contentType] == nil, !isOmitted(.contentType) {
            try encoder.field(name: "Content-Type", value: type)
        }
        if isChunked {
            try encoder.framing(.chunked)
        } else if let length = prepared.length {
            try encoder.framing(.length(length))
        }
        var trailers: [(name: String, value: String)] = []
        if isChunked, !call.options.trailers.isEmpty {
            trailers = call.options.trailers.map { ($0.name.rawName, $0.value) }
            if fields[.trailer] == nil {
                try encoder.field(name: "Trailer", value: trailers.map(\.name).joined(separator: ", "))
            }
            // Invalid trailers are rejected here, and not after the body, where they are written.
            var chunks = ChunkEncoder()
            _ = try chunks.lastChunk(trailers: trailers)
        }
        encoder.end()
        return ExchangeRequest(
            head: encoder.bytes, method: call.method.rawValue, version: version, body: prepared.body,
            expectsContinue: expectsContinue, continueWait: call.settings.configuration.continueTimeout,
            wantsKeepAlive: version == .http11 && !call.sentFields.contains("connection", token: "close"),
            isRaw: call.options.returnsRawBody == true, ignoresLength: call.options.ignoresContentLength == true,
            trailers: trailers)
    }

    /// Adds the fields of ``Call/sentFields``, as far as the body allows.
    /// - Returns: Whether the body waits for a 100.
    private func encodeFields(_ prepared: PreparedBody, _ encoder: inout RequestEncoder) throws(WireError) -> Bool {
        if let lines = call.sent.lines {
            // Encoded when the session was made, and without a field that depends on the body.
            encoder.lines(lines)
            return false
        }
        let fields = call.sentFields
        func isField(_ index: Int, _ name: String) -> Bool { fields.firstIndex(of: name, from: index) == index }
        var expectsContinue = false
        for index in fields.indices {
            if isField(index, "expect"), fields.valueString(at: index).lowercased() == "100-continue" {
                // Without content there is nothing to wait for (RFC 9110 §10.1.1).
                guard allowsExpectation, call.options.version != .http10, call.body.isPresent, prepared.length != 0
                else { continue }
                expectsContinue = true
            }
            if isField(index, "content-type"), let type = call.body.contentType {
                // The body knows its type better than a default of the session.
                guard call.fields.contains(.contentType) else { continue }
                let given = fields.valueString(at: index)
                if let boundary = missingBoundary(of: type, in: given) {
                    try encoder.field(name: "Content-Type", value: "\(given); boundary=\(boundary)")
                    continue
                }
            }
            try encoder.field(of: fields, at: index)
        }
        return expectsContinue
    }

    /// The boundary of a form, if the type that was given for it has none: such a form could not be read (RFC 2046 §5.1.1).
    private func missingBoundary(of type: String, in value: String) -> String? {
        guard type.hasPrefix("multipart/"), let given = MediaType(value), given.type == "multipart",
            given["boundary"] == nil
        else { return nil }
        return MediaType(type)?["boundary"]
    }

    private func isOmitted(_ name: HTTPField.Name) -> Bool { call.options.omittedFields.contains(name) }

    /// Whether a field depends on the URL, the body or a cookie jar, and so is not taken over from the caller as it is.
    static func isSetHere(_ name: HTTPField.Name) -> Bool {
        name == .hostField || name == .contentLength || name == .transferEncoding || name == .cookie
    }

    // MARK: The body

    /// Opens the body: finds its length, and checks the caller's fields about it.
    func prepareBody() async throws(HTTPError) -> PreparedBody {
        if let prepared = try prepareBodyAtOnce() { return prepared }
        let (source, length): (any RequestBodySource, UInt64?)
        do throws(HTTPError) { (source, length) = try await call.body.open() } catch {
            throw error.about(call.method, call.url)
        }
        return try framed(PreparedBody(body: .source(source, length: length), length: length))
    }

    /// The first step of ``prepareBody()``: the body, if it can be opened without waiting, as most can.
    func prepareBodyAtOnce() throws(HTTPError) -> PreparedBody? {
        if call.supplement?.withholdsBody == true { return PreparedBody(body: .bytes([]), length: 0) }
        if !call.body.isPresent { return try framed(PreparedBody(body: .none)) }
        guard case .success(let bytes)? = call.body.bytesInMemory else { return nil }
        return try framed(PreparedBody(body: .bytes(bytes), length: UInt64(bytes.count)))
    }

    /// Reads a source that is announced to have no bytes.
    ///
    /// The head of an empty body is the whole request, so this must be known before the request is sent.
    func confirmEmpty(_ source: any RequestBodySource) async throws(HTTPError) {
        do {
            while let piece = try await source.next() {
                if piece.isEmpty { continue }
                throw ExchangeError(
                    cause: .lengthMismatch(announced: 0, actual: UInt64(piece.count)), phase: .sending, wasSent: false)
            }
        } catch {
            let failure =
                error as? ExchangeError ?? ExchangeError(cause: .source(error), phase: .sending, wasSent: false)
            throw HTTPError(failure, call: call, attempts: 1)
        }
    }

    /// Applies the caller's fields about the body, and checks them.
    private func framed(_ opened: PreparedBody) throws(HTTPError) -> PreparedBody {
        var prepared = opened
        let fields = call.fields
        if fields.isEmpty {
            // Most requests.
        } else if let coding = fields[.transferEncoding] {
            guard coding.lowercased() == "chunked", fields[.contentLength] == nil else {
                throw refusal(
                    "Transfer-Encoding may be “chunked” alone, and not beside Content-Length; it was “\(coding)”")
            }
            prepared.makeChunked()
        } else if let announced = fields[.contentLength] {
            guard let length = UInt64(announced), announced.utf8.allSatisfy({ (48...57).contains($0) }) else {
                throw refusal("Content-Length must be one plain number; it was “\(announced)”")
            }
            if let known = prepared.length, known != length {
                throw refusal("Content-Length says \(length), but the body has \(known) bytes")
            }
            if case .none = prepared.body {
                guard length == 0 else { throw refusal("Content-Length says \(length), but there is no body") }
                prepared.length = 0
            } else if case .source(let source, nil) = prepared.body {
                prepared = PreparedBody(body: .source(source, length: length), length: length)
            }
        }
        if prepared.isChunked, call.options.version == .http10 {
            throw refusal("HTTP/1.0 has no chunks: the body needs a length")
        }
        let impliesBody = call.method == .post || call.method == .put || call.method == .patch
        if prepared.length == nil, !prepared.isChunked, impliesBody {
            // A method that gives a body a meaning announces that there is none (RFC 9110 §8.6).
            prepared.length = 0
        }
        return prepared
    }
}

extension RequestEncoder {
    /// Adds the field at an index of a block.
    mutating func field(of block: FieldBlock, at index: Int) throws(WireError) {
        try field(name: block.nameString(at: index), rawValue: Array(block.value(at: index)))
    }
}

extension HTTPField {
    /// The value as it is sent, if it is not text; otherwise `nil`.
    ///
    /// `value` has the replacement character for bytes that are not UTF-8, so that values which differ would be equal. Only then
    /// are the bytes read.
    fileprivate var nonUTF8Bytes: [UInt8]? {
        let value = value
        guard value.utf8.contains(0xEF), value.unicodeScalars.contains("\u{FFFD}") else { return nil }
        return unsafe withUnsafeBytesOfValue { unsafe Array($0) }
    }

    /// The value as it is sent: bytes that are not UTF-8 are sent as they are (obs-text, RFC 9110 §5.5).
    var valueBytes: [UInt8] { nonUTF8Bytes ?? Array(value.utf8) }
}

extension FieldBlock {
    /// Adds a field at the end, as it is sent.
    mutating func append(_ field: HTTPField) {
        if let bytes = field.nonUTF8Bytes {
            append(name: field.name.rawName.utf8, value: bytes)
        } else {
            append(name: field.name.rawName, value: field.value)
        }
    }
}
