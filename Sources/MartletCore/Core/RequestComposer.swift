import MartletContent
import HTTPTypes
import MartletConnections
import MartletTransport
import MartletWire
import SystemPackage

/// Turns a call into what an exchange sends: the fields in their final form, the framing, the bytes of the head.
///
/// Whatever could split the request, or frame its body in two ways, is refused here, before a byte is written. Values of
/// `HTTPFields` come here with CR, LF and NUL replaced by spaces already: the type does so when they are set, and what they
/// were cannot be known any more.
struct RequestComposer {
    /// The call.
    let call: Call
    /// Whether `Expect: 100-continue` may be sent; not after a 417.
    var allowsExpectation = true
    /// What convinces the proxy that the request is handed to.
    var proxyAuthorization: String?

    /// A body ready to be sent.
    struct PreparedBody: Sendable {
        var body: OutgoingBody
        var length: UInt64?
    }

    /// Composes the request.
    func compose(_ prepared: PreparedBody) throws(HTTPError) -> ExchangeRequest {
        do throws(WireError) {
            return try encode(prepared)
        } catch {
            throw refusal(error.description)
        }
    }

    /// What a form's parts are told apart by, where the type that was given for it does not say so: nobody could read it
    /// (RFC 2046 §5.1.1).
    private func missingBoundary(in value: String) -> String? {
        guard let type = call.body.contentType, type.hasPrefix("multipart/"),
            let given = MediaType(value), given.type == "multipart", given["boundary"] == nil
        else { return nil }
        return MediaType(type)?["boundary"]
    }

    private func refusal(_ message: String) -> HTTPError {
        HTTPError(.invalidRequest, phase: .preparing, message: message, origin: call.url.origin.description)
    }

    private func encode(_ prepared: PreparedBody) throws(WireError) -> ExchangeRequest {
        let fields = call.fields
        let isChunked = prepared.isChunked
        let isHTTP10 = call.options.version == .http10
        var demands = Demands(keepsAlive: !isHTTP10)
        var encoder = RequestEncoder()
        try encoder.begin(
            method: call.method.rawValue, target: call.requestTarget, version: isHTTP10 ? .http10 : .http11)
        if !fields.isEmpty, let host = fields[.hostField] {
            try encoder.hostField(host)
        } else if !isOmitted(.hostField) {
            try encoder.field(name: "Host", value: call.url.hostFieldValue)
        }
        for field in fields where !RequestComposer.isSetHere(field.name) {
            guard demands.take(field, mayExpect: mayExpect(prepared)) else { continue }
            if call.hidesProxyAuthorization, field.name == .proxyAuthorization { continue }
            if field.name == .contentType, let boundary = missingBoundary(in: field.value) {
                try encoder.field(name: "Content-Type", value: "\(field.value); boundary=\(boundary)")
                continue
            }
            try RequestComposer.encode(field, &encoder)
        }
        if let lines = call.settings.defaultLines, call.options.omittedFields.isEmpty, lines.suit(fields) {
            if !fields.isEmpty || call.supplement?.cookies != nil { try encodeCookies(fields, &encoder) }
            encoder.lines(call.asksForCoding ? lines.asking : lines.plain)
        } else {
            try encodeCookies(fields, &encoder)
            try encodeDefaults(fields, prepared, &demands, &encoder)
        }
        if call.supplement?.asksFirst == true, allowsExpectation, !isHTTP10, !demands.expects,
            prepared.length != 0, fields[.expect] == nil, !isOmitted(.expect)
        {
            try encoder.field(name: "Expect", value: "100-continue")
            demands.expects = true
        }
        if let authorization = call.supplement?.authorization {
            try encoder.field(name: "Authorization", rawValue: authorization)
        }
        if let added = call.supplement?.cacheFields {
            for index in added.indices {
                try encoder.field(name: added.nameString(at: index), rawValue: Array(added.value(at: index)))
            }
        }
        if let proxyAuthorization {
            try encoder.field(name: "Proxy-Authorization", value: proxyAuthorization)
        }
        if let type = call.body.contentType, fields[.contentType] == nil, !isOmitted(.contentType) {
            try encoder.field(name: "Content-Type", value: type)
        }
        if prepared.length != nil || isChunked {
            let framing: BodyFraming = isChunked ? .chunked : .length(prepared.length ?? 0)
            try encoder.framing(framing)
        }
        if isChunked, !call.options.trailers.isEmpty, fields[.trailer] == nil {
            let names = call.options.trailers.map(\.name.rawName).joined(separator: ", ")
            try encoder.field(name: "Trailer", value: names)
        }
        encoder.end()
        var trailers: [(name: String, value: String)] = []
        if isChunked, !call.options.trailers.isEmpty {
            trailers = call.options.trailers.map { ($0.name.rawName, $0.value) }
            // Refused here and not behind the body, which is where they are written.
            var chunks = ChunkEncoder()
            _ = try chunks.lastChunk(trailers: trailers)
        }
        return ExchangeRequest(
            head: encoder.bytes, method: call.method.rawValue, version: isHTTP10 ? .http10 : .http11,
            body: prepared.body, expectsContinue: demands.expects,
            continueWait: call.settings.configuration.continueTimeout, wantsKeepAlive: demands.keepsAlive,
            isRaw: call.options.isRaw, ignoresLength: call.options.ignoresContentLength, trailers: trailers)
    }

    /// What fields ask of this side besides being sent.
    private struct Demands {
        /// Whether the body waits for a 100.
        var expects = false
        /// Whether the connection is kept.
        var keepsAlive: Bool

        /// Notes what a field asks for.
        /// - Returns: Whether it is sent: without content there is nothing to wait for (RFC 9110 §10.1.1).
        mutating func take(_ field: HTTPField, mayExpect: Bool) -> Bool {
            if field.name == .expect, field.value.lowercased() == "100-continue" {
                guard mayExpect else { return false }
                expects = true
            }
            // Whoever says so sends nothing more over it (RFC 9112 §9.6).
            if field.name == .connection, RequestComposer.names("close", field.value) { keepsAlive = false }
            return true
        }
    }

    private func mayExpect(_ prepared: PreparedBody) -> Bool {
        allowsExpectation && call.options.version != .http10 && call.body.isPresent && prepared.length != 0
    }

    /// A value that is not UTF-8 goes out byte by byte (obs-text, RFC 9110 §5.5).
    static func encode(_ field: HTTPField, _ encoder: inout RequestEncoder) throws(WireError) {
        guard let bytes = field.bytesOfNoText else {
            return try encoder.field(name: field.name.rawName, value: field.value)
        }
        try encoder.field(name: field.name.rawName, rawValue: bytes)
    }

    /// Several `Cookie` fields are one in HTTP/1.1 (RFC 6265bis §5.7.3).
    private func encodeCookies(_ fields: HTTPFields, _ encoder: inout RequestEncoder) throws(WireError) {
        var lines = fields[fields: .cookie].map(\.valueBytes)
        if lines.isEmpty, !isOmitted(.cookie) {
            lines = call.settings.configuration.headers[fields: .cookie].map(\.valueBytes)
        }
        // Behind what the caller set: of two cookies of one name most servers take the first.
        if let kept = call.supplement?.cookies { lines.append(kept) }
        guard !lines.isEmpty else { return }
        try encoder.field(name: "Cookie", rawValue: Array(lines.joined(separator: "; ".utf8)))
    }

    private func encodeDefaults(
        _ fields: HTTPFields, _ prepared: PreparedBody, _ demands: inout Demands,
        _ encoder: inout RequestEncoder
    ) throws(WireError) {
        let defaults = call.settings.configuration.defaultFields(asksForCoding: call.asksForCoding) { name in
            RequestComposer.isSetHere(name) || fields[name] != nil || isOmitted(name)
        }
        for field in defaults {
            if let given = field.field {
                guard demands.take(given, mayExpect: mayExpect(prepared)) else { continue }
                if call.hidesProxyAuthorization, given.name == .proxyAuthorization { continue }
                // The body knows its type better than a default that was set for all.
                if given.name == .contentType, call.body.contentType != nil { continue }
            }
            try field.encode(&encoder)
        }
    }

    private func isOmitted(_ name: HTTPField.Name) -> Bool { call.options.omittedFields.contains(name) }

    /// Fields that depend on the URL and the body, and so are not taken over from the caller as they stand.
    static func isSetHere(_ name: HTTPField.Name) -> Bool {
        name == .hostField || name == .contentLength || name == .transferEncoding || name == .cookie
    }

    private static func names(_ token: String, _ value: String) -> Bool {
        value.split(separator: ",").contains { part in
            part.lowercased().filter { $0 != " " && $0 != "\t" } == token
        }
    }

    // MARK: The body

    /// Opens the body: finds its length, and checks what the caller said about it.
    func prepareBody() async throws(HTTPError) -> PreparedBody { try framed(try await open()) }

    /// Reads a source that is said to have no bytes.
    ///
    /// The head of an empty body is the whole request, so this must be known before the request is sent.
    func confirmEmpty(_ source: any BodySource) async throws(HTTPError) {
        do {
            while let piece = try await source.next() {
                if piece.isEmpty { continue }
                throw ExchangeError(
                    cause: .lengthMismatch(announced: 0, actual: UInt64(piece.count)), phase: .sending,
                    wasSent: false)
            }
        } catch {
            let failure =
                error as? ExchangeError
                ?? ExchangeError(cause: .source(error), phase: .sending, wasSent: false)
            throw HTTPError(failure, call: call, attempts: 1)
        }
    }

    /// The body, where nothing has to be waited for to open it, as for most; `nil` where something has.
    func prepareBodyAtOnce() throws(HTTPError) -> PreparedBody? {
        if call.supplement?.withholdsBody == true { return PreparedBody(body: .bytes([]), length: 0) }
        return switch call.body.storage {
        case .none: try framed(PreparedBody(body: .none, length: nil))
        case .bytes(let bytes): try framed(PreparedBody(body: .bytes(bytes), length: UInt64(bytes.count)))
        case .multipart(let content):
            if let bytes = content.bytes {
                try framed(PreparedBody(body: .bytes(bytes), length: UInt64(bytes.count)))
            } else {
                nil
            }
        default: nil
        }
    }

    /// What the caller's fields say about the body, and whether they may.
    private func framed(_ opened: PreparedBody) throws(HTTPError) -> PreparedBody {
        var prepared = opened
        let fields = call.fields
        if fields.isEmpty {
            // Most requests.
        } else if let coding = fields[.transferEncoding] {
            guard coding.lowercased() == "chunked", fields[.contentLength] == nil else {
                throw refusal(
                    "Transfer-Encoding may be “chunked” alone, and not beside Content-Length; it was “\(coding)”"
                )
            }
            prepared = prepared.chunked()
        } else if let announced = fields[.contentLength] {
            guard let length = UInt64(announced), announced.utf8.allSatisfy({ (48...57).contains($0) }) else {
                throw refusal("Content-Length must be one plain number; it was “\(announced)”")
            }
            if let known = prepared.length, known != length {
                throw refusal("Content-Length says \(length), but the body has \(known) bytes")
            }
            if case .none = prepared.body {
                guard length == 0 else {
                    throw refusal("Content-Length says \(length), but there is no body")
                }
                prepared.length = 0
            } else if case .source(let source, nil) = prepared.body {
                prepared = PreparedBody(body: .source(source, length: length), length: length)
            }
        }
        if prepared.isChunked, call.options.version == .http10 {
            throw refusal("HTTP/1.0 has no chunks: the body needs a length")
        }
        if prepared.length == nil, !prepared.isChunked, RequestComposer.impliesBody(call.method) {
            // RFC 9110 §8.6: a method that gives a body a meaning says that there is none.
            prepared.length = 0
        }
        return prepared
    }

    private static func impliesBody(_ method: HTTPRequest.Method) -> Bool {
        method == .post || method == .put || method == .patch
    }

    private func open() async throws(HTTPError) -> PreparedBody {
        switch call.body.storage {
        case .none: return PreparedBody(body: .none, length: nil)
        case .bytes(let bytes): return PreparedBody(body: .bytes(bytes), length: UInt64(bytes.count))
        case .multipart(let content):
            if let bytes = content.bytes {
                return PreparedBody(body: .bytes(bytes), length: UInt64(bytes.count))
            }
        case .stream, .once, .file, .failure: break
        }
        do throws(HTTPError) {
            let (source, length) = try await call.body.open()
            return PreparedBody(body: .source(source, length: length), length: length)
        } catch {
            var refusal = error
            refusal.origin = call.url.origin.description
            throw refusal
        }
    }
}

extension RequestComposer.PreparedBody {
    /// Whether the body goes out in chunks.
    var isChunked: Bool { if case .source(_, nil) = body { true } else { false } }

    /// The same body in chunks, whatever its length.
    func chunked() -> RequestComposer.PreparedBody {
        switch body {
        case .none: return self
        case .bytes(let bytes):
            return RequestComposer.PreparedBody(body: .source(BytesSource(bytes), length: nil), length: nil)
        case .source(let source, _):
            return RequestComposer.PreparedBody(body: .source(source, length: nil), length: nil)
        }
    }
}

extension HTTPField {
    /// The value as it goes out, where it is no text: `value` has the replacement character then, for what makes no sense as
    /// UTF-8, so that values which differ are one; only then is it worth a look at the bytes. `nil` where `value` is all of it.
    var bytesOfNoText: [UInt8]? {
        let value = value
        guard value.utf8.contains(0xEF), value.unicodeScalars.contains("\u{FFFD}") else { return nil }
        return unsafe withUnsafeBytesOfValue { unsafe Array($0) }
    }

    /// The value as it goes out.
    var valueBytes: [UInt8] { bytesOfNoText ?? Array(value.utf8) }
}

extension FieldBlock {
    /// Adds a field at the end, as it goes out.
    mutating func append(_ field: HTTPField) {
        if let bytes = field.bytesOfNoText {
            append(name: field.name.rawName.utf8, value: bytes)
        } else {
            append(name: field.name.rawName, value: field.value)
        }
    }
}

/// Heads as the public API has them.
package enum HeadConversion {
    /// A response of the ecosystem's type. The wire has made sure that nothing in it traps there: the status has three
    /// digits and is at least 100, names are tokens, and there are at most as many fields as the limit says.
    package static func response(_ head: ResponseHead) -> HTTPResponse {
        HTTPResponse(
            status: HTTPResponse.Status(code: head.status, reasonPhrase: head.reason),
            headerFields: fields(head.fields))
    }

    /// Names that most responses have, as they are mostly written: making one anew takes longer than finding it.
    private static let commonNames: [String: HTTPField.Name] = {
        let names = [
            "Accept-Ranges", "Access-Control-Allow-Origin", "Age", "Allow", "Alt-Svc", "Cache-Control",
            "Connection", "Content-Disposition", "Content-Encoding", "Content-Language", "Content-Length",
            "Content-Location", "Content-Range", "Content-Security-Policy", "Content-Type", "Date", "ETag",
            "Expires", "Keep-Alive", "Last-Modified", "Link", "Location", "Pragma", "Referrer-Policy",
            "Retry-After", "Server", "Set-Cookie", "Strict-Transport-Security", "Transfer-Encoding", "Vary",
            "Via", "WWW-Authenticate", "X-Cache", "X-Content-Type-Options", "X-Frame-Options", "X-Powered-By",
            "X-Request-Id",
        ]
        var table: [String: HTTPField.Name] = [:]
        for name in names + names.map({ $0.lowercased() }) { table[name] = HTTPField.Name(name) }
        return table
    }()

    /// Fields of the ecosystem's type, in order.
    static func fields(_ block: FieldBlock) -> HTTPFields {
        var fields = HTTPFields()
        fields.reserveCapacity(block.count)
        for index in block.indices {
            let text = block.nameString(at: index)
            guard let name = commonNames[text] ?? HTTPField.Name(text) else { continue }
            fields.append(HTTPField(name: name, value: block.valueString(at: index)))
        }
        return fields
    }
}
