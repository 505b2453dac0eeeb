/// A composer that turns a call into the request of an exchange: the bytes of the head, the framing and the body.
///
/// Before a byte is written, it rejects values that could split the request or frame its body in two ways. `HTTPFields`
/// replaces CR, LF and NUL by spaces when a value is set; ``HTTPHeaders`` rejects them earlier.
struct RequestComposer {
    let call: Call
    /// Whether `Expect: 100-continue` may be sent; `false` after a 417.
    var allowsExpectation = true
    /// The credentials for the proxy that forwards the request.
    var proxyAuthorization: String?

    /// A body that is ready to be sent.
    struct PreparedBody: Sendable {
        var body: OutgoingBody
        var length: UInt64?
        /// Whether the body is compressed, as ``HTTPBody/compressed(_:level:)`` demands.
        var isCompressed = false

        var isChunked: Bool { if case .source(_, nil) = body { true } else { false } }

        /// Changes the framing to chunked, even if the length is known.
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
        do throws(WireError) { return try encode(prepared) } catch { throw rejection(error.description) }
    }

    private func rejection(_ message: String) -> HTTPError { call.error(.invalidRequest, .preparing, message) }

    private func encode(_ prepared: PreparedBody) throws(WireError) -> ExchangeRequest {
        let fields = call.fields
        let isChunked = prepared.isChunked
        let version: WireVersion = call.options.version == .http10 ? .http10 : .http11
        var encoder = RequestEncoder(reusing: HeadMemory.take())
        try encoder.begin(method: call.method.rawValue, target: call.requestTarget, version: version)
        if !fields.isEmpty, let host = fields[.hostField] {
            try encoder.hostField(host)
        } else if !isOmitted(.hostField) {
            try encoder.field(name: "Host", value: call.url.hostFieldValue)
        }
        var expectsContinue = try encodeFields(prepared, &encoder)
        if call.supplement?.expectsChallenge == true, allowsExpectation, version == .http11, !expectsContinue,
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
        if let codings = call.body.compression?.fieldValue(
            after: call.sentFields.values(of: "content-encoding"), isApplied: prepared.isCompressed)
        {
            try encoder.field(name: "Content-Encoding", value: codings)
        }
        if isChunked {
            try encoder.framing(.chunked)
        } else if let length = prepared.length {
            try encoder.framing(.length(length))
        }
        var trailers: [(name: String, value: String)] = []
        // The caller's own trailer of that name takes precedence.
        let last = call.body.trailer.flatMap { last in
            isChunked && !call.options.trailers.contains { $0.name.canonicalName == last.name.lowercased() }
                ? last : nil
        }
        if isChunked, !call.options.trailers.isEmpty || last != nil {
            trailers = call.options.trailers.map { ($0.name.rawName, $0.value) }
            if fields[.trailer] == nil {
                let names = trailers.map(\.name) + [last?.name].compactMap(\.self)
                try encoder.field(name: "Trailer", value: names.joined(separator: ", "))
            }
            // Invalid trailers are rejected here, because they are written after the body.
            var chunks = ChunkEncoder()
            _ = try chunks.lastChunk(trailers: trailers)
        }
        encoder.end()
        return ExchangeRequest(
            head: encoder.bytes, method: call.method.rawValue, version: version, body: prepared.body,
            expectsContinue: expectsContinue, continueWait: call.settings.configuration.continueTimeout,
            wantsKeepAlive: version == .http11 && !call.sent.asksToClose,
            isRaw: call.options.returnsRawBody == true, ignoresLength: call.options.ignoresContentLength == true,
            acceptsProgress: call.options.onInterimResponse != nil,
            acceptsUpgrade: call.options.acceptsUpgrade && call.sentFields.contains("upgrade"),
            trailers: trailers, bodyTrailer: last)
    }

    /// Adds the fields of ``Call/sentFields`` that the body allows.
    /// - Returns: Whether the body waits for a 100.
    private func encodeFields(_ prepared: PreparedBody, _ encoder: inout RequestEncoder) throws(WireError) -> Bool {
        if let lines = call.sent.lines {
            // These were encoded when the session was created, and contain no field that depends on the body.
            encoder.lines(lines)
            return false
        }
        let fields = call.sentFields
        func isField(_ index: Int, _ name: String) -> Bool { fields.firstIndex(of: name, from: index) == index }
        var expectsContinue = false
        for index in fields.indices {
            if isField(index, "expect"), fields.valueString(at: index).lowercased() == "100-continue" {
                // A request without content does not wait (RFC 9110 §10.1.1).
                guard allowsExpectation, call.options.version != .http10, call.body.isPresent, prepared.length != 0
                else { continue }
                expectsContinue = true
            }
            if isField(index, "content-encoding"), call.body.compression != nil { continue }
            if isField(index, "content-type"), let type = call.body.contentType {
                // The body's type takes precedence over a default of the session.
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

    /// Returns the boundary of a multipart body (RFC 2046 §5.1.1) if the caller's content type has none.
    private func missingBoundary(of type: String, in value: String) -> String? {
        guard type.hasPrefix("multipart/"), let given = MediaType(value), given.type == "multipart",
            given["boundary"] == nil
        else { return nil }
        return MediaType(type)?["boundary"]
    }

    private func isOmitted(_ name: HTTPField.Name) -> Bool { call.options.omittedFields.contains(name) }

    /// Whether the composer sets the field, from the URL, the body or the cookies, instead of copying the caller's.
    static func isSetHere(_ name: HTTPField.Name) -> Bool {
        name == .hostField || name == .contentLength || name == .transferEncoding || name == .cookie
    }

    /// Opens the body, determines its length, and checks the caller's `Content-Length` and `Transfer-Encoding`.
    func prepareBody() async throws(HTTPError) -> PreparedBody {
        if let prepared = try prepareBodyAtOnce() { return prepared }
        do {
            if let compression, case .success(let bytes)? = call.body.bytesInMemory,
                bytes.count <= BodyCompression.collectedByteCount
            {
                let compressed = try await BlockingThreadPool.shared.run { () throws(ContentEncodingError) in
                    try compression.compressed(bytes)
                }
                return try framed(bytes: compressed ?? bytes, isCompressed: compressed != nil)
            }
            let (source, length) = try await call.body.open()
            guard let compression, length != 0 else {
                return try framed(PreparedBody(body: .source(source, length: length), length: length))
            }
            let compressed = try CompressedBody(compression, length: length) { try await source.next() }
            return try framed(PreparedBody(body: .source(compressed, length: nil), isCompressed: true))
        } catch let error as HTTPError { throw error.about(call.method, call.url) } catch {
            throw call.error(.systemFailed, .preparing, "\(error)", underlying: error)
        }
    }

    /// The compression to apply to the body; `nil` for none. A trailer of the body is computed before the compression.
    private var compression: BodyCompression? {
        if call.body.trailer != nil { return nil }
        return call.body.compression.flatMap { $0.applies(to: call.sentFields, call.options.trailers) ? $0 : nil }
    }

    /// Prepares the body if it can be opened without waiting, as most can: the first step of ``prepareBody()``.
    func prepareBodyAtOnce() throws(HTTPError) -> PreparedBody? {
        if call.supplement?.withholdsBody == true { return PreparedBody(body: .bytes([]), length: 0) }
        if !call.body.isPresent { return try framed(PreparedBody(body: .none)) }
        guard case .success(let bytes)? = call.body.bytesInMemory, bytes.isEmpty || compression == nil else {
            return nil
        }
        return try framed(bytes: bytes)
    }

    private func framed(bytes: [UInt8], isCompressed: Bool = false) throws(HTTPError) -> PreparedBody {
        try framed(PreparedBody(body: .bytes(bytes), length: UInt64(bytes.count), isCompressed: isCompressed))
    }

    /// Reads a source with a declared length of 0.
    ///
    /// With an empty body the head is the whole request, so the length must be confirmed before the head is sent.
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

    /// Checks the caller's `Content-Length` and `Transfer-Encoding`, and applies them to the framing.
    private func framed(_ opened: PreparedBody) throws(HTTPError) -> PreparedBody {
        var prepared = opened
        let fields = call.fields
        if fields.isEmpty {
            // Most requests have neither field.
        } else if let coding = fields[.transferEncoding] {
            guard coding.lowercased() == "chunked", fields[.contentLength] == nil else {
                throw rejection(
                    "Transfer-Encoding must be “chunked” alone, without Content-Length; it was “\(coding)”")
            }
            prepared.makeChunked()
        } else if let announced = fields[.contentLength] {
            guard compression == nil else {
                throw rejection("Content-Length is set, but the length of a compressed body is not known in advance")
            }
            guard let length = UInt64(announced), announced.utf8.allSatisfy({ (48...57).contains($0) }) else {
                throw rejection("Content-Length must be one plain number; it was “\(announced)”")
            }
            if let known = prepared.length, known != length {
                throw rejection("Content-Length is \(length), but the body has \(known) bytes")
            }
            if case .none = prepared.body {
                guard length == 0 else { throw rejection("Content-Length is \(length), but there is no body") }
                prepared.length = 0
            } else if case .source(let source, nil) = prepared.body {
                prepared = PreparedBody(body: .source(source, length: length), length: length)
            }
        }
        if prepared.isChunked, call.options.version == .http10 {
            throw rejection("HTTP/1.0 does not support chunked bodies: the body needs a length")
        }
        // GET is excluded first: it is the most frequent method, and then needs no further comparisons.
        if call.method != .get, prepared.length == nil, !prepared.isChunked,
            call.method == .post || call.method == .put || call.method == .patch
        {
            // These methods usually have a body, so its absence is sent as a length of 0 (RFC 9110 §8.6).
            prepared.length = 0
        }
        return prepared
    }
}

extension CompressedBody: RequestBodySource {}

extension RequestEncoder {
    mutating func field(of block: FieldBlock, at index: Int) throws(WireError) {
        try field(name: block.nameString(at: index), rawValue: Array(block.value(at: index)))
    }
}

extension HTTPField {
    /// The bytes of a value that is not UTF-8; `nil` for a value in UTF-8.
    ///
    /// `value` replaces invalid bytes by U+FFFD, so different values could become equal.
    fileprivate var nonUTF8Bytes: [UInt8]? {
        let value = value
        guard value.utf8.contains(0xEF), value.unicodeScalars.contains("\u{FFFD}") else { return nil }
        return unsafe withUnsafeBytesOfValue { unsafe Array($0) }
    }

    /// The bytes of the value as sent: bytes that are not UTF-8 are sent unchanged (obs-text, RFC 9110 §5.5).
    var valueBytes: [UInt8] { nonUTF8Bytes ?? Array(value.utf8) }
}

extension FieldBlock {
    /// Creates a block of fields, in order.
    init(_ fields: HTTPFields) {
        self.init()
        for field in fields { append(field) }
    }

    /// Appends a field. Bytes that are not UTF-8 are unchanged.
    mutating func append(_ field: HTTPField) {
        if let bytes = field.nonUTF8Bytes {
            append(name: field.name.rawName.utf8, value: bytes)
        } else {
            append(name: field.name.rawName, value: field.value)
        }
    }
}
