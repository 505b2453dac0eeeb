import FoundationEssentials
public import MartletCore
public import SystemPackage

/// A response of a test origin's handler.
public struct OriginResponse: Sendable {
    /// The status, 200 to 999, or 101 with a ``takeover``; other interim responses are in ``interim``.
    public var status: Int
    /// The reason phrase; `nil` (the default) for the standard phrase of the status.
    public var reason: String?
    /// The header fields, sent in this order and with repetitions. A Content-Length or Transfer-Encoding among them
    /// replaces the origin's framing, and the body is then sent unframed.
    public var headers: OriginFields
    /// The body. It is omitted if the method or the status allows none (RFC 9112 §6.3).
    public var body: OriginResponseBody
    /// The framing of the body.
    public var framing = OriginFraming.automatic
    /// The trailer fields, which are sent with chunked framing only.
    public var trailers = OriginFields()
    /// Responses sent before this one.
    public var interim: [InterimResponse] = []
    /// Whether the connection is closed after the response. With `false` the client decides.
    public var closesConnection = false
    /// Whether the status line contains HTTP/1.0.
    public var usesHTTP10 = false
    /// The delay before the head is sent. It ends early if the client disconnects.
    public var delay = Duration.zero
    /// The speed of the body; `nil` to send it as fast as the client accepts it.
    public var pacing: OriginPacing?
    /// An intentional fault.
    public var fault: OriginFault?
    /// A closure that owns the connection as a stream of bytes after the head, which then has no framing: after a 101, or
    /// a 2xx to CONNECT. The connection is closed when it returns. A thrown ``OriginFault`` happens immediately.
    public var takeover: (@Sendable (OriginStream) async throws -> Void)?

    /// Creates a response.
    /// - Parameters:
    ///   - status: The status, 200 to 999.
    ///   - headers: The header fields; the origin adds those of the framing.
    ///   - body: The body; empty by default.
    ///   - contentType: The value of Content-Type; `nil` to send none except for one in `headers`.
    public init(
        _ status: Int = 200, headers: OriginFields = [:], contentType: String? = nil, body: OriginResponseBody = .empty
    ) {
        (self.status, self.body) = (status, body)
        self.headers = headers.with(contentType: contentType)
    }

    /// A status, with its reason phrase as the body: `404 Not Found`. 204 and 304 have no body and no Content-Type.
    public static func status(_ code: Int, headers: OriginFields = [:]) -> OriginResponse {
        if code == 204 || code == 304 { return OriginResponse(code, headers: headers) }
        return .text("\(code) \(StatusPhrase.of(code))\n", status: code, headers: headers)
    }

    /// Text; by default `text/plain` in UTF-8. In all of these functions, a Content-Type in `headers` takes precedence.
    public static func text(
        _ text: String, status: Int = 200, headers: OriginFields = [:],
        contentType: String = "text/plain; charset=utf-8"
    ) -> OriginResponse { OriginResponse(status, headers: headers, contentType: contentType, body: .text(text)) }

    /// JSON text, sent unchanged.
    public static func json(
        text: String, status: Int = 200, headers: OriginFields = [:], contentType: String = "application/json"
    ) -> OriginResponse { .text(text, status: status, headers: headers, contentType: contentType) }

    /// A value encoded as JSON, by an encoder such as `.json(keys: .snakeCase, dates: .iso8601)`. `nil` (the default)
    /// encodes as a new `JSONEncoder` does, but sorts the keys and does not escape slashes.
    /// - Throws: The encoder's error.
    public static func json(
        _ value: some Encodable, status: Int = 200, headers: OriginFields = [:],
        contentType: String = "application/json", encoder: BodyEncoder? = nil
    ) throws -> OriginResponse {
        let plain = JSONEncoder()
        plain.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let bytes = try (encoder ?? BodyEncoder.json(plain)).bytes(of: value)
        return .bytes(bytes, status: status, headers: headers, contentType: contentType)
    }

    /// Bytes with a Content-Type.
    public static func bytes(
        _ bytes: [UInt8], status: Int = 200, headers: OriginFields = [:],
        contentType: String = "application/octet-stream"
    ) -> OriginResponse { OriginResponse(status, headers: headers, contentType: contentType, body: .bytes(bytes)) }

    /// A number of bytes of ``TestPattern``.
    public static func pattern(_ count: UInt64, status: Int = 200, headers: OriginFields = [:]) -> OriginResponse {
        OriginResponse(status, headers: headers, contentType: "application/octet-stream", body: .pattern(count))
    }

    /// Bytes that are compressed already, with the name of their coding; the origin itself compresses nothing.
    public static func encoded(
        _ bytes: [UInt8], coding: String, headers: OriginFields = [:], contentType: String = "text/plain; charset=utf-8"
    ) -> OriginResponse {
        .bytes(bytes, headers: headers, contentType: contentType).with {
            $0.headers.append("Content-Encoding", coding)
            $0.headers.append("Vary", "Accept-Encoding")
        }
    }

    /// An HTML page with a title and a list, both in HTML.
    static func page(_ title: String, items: [String]) -> OriginResponse {
        let list = items.map { "<li>\($0)</li>\n" }.joined()
        return .text(
            "<!doctype html>\n<title>\(title)</title>\n<h1>\(title)</h1>\n<ul>\n\(list)</ul>\n",
            contentType: "text/html; charset=utf-8")
    }

    /// A redirect to a location; status 302 by default.
    public static func redirect(to location: String, status: Int = 302) -> OriginResponse {
        OriginResponse(status, headers: ["Location": location])
    }

    /// `101 Switching Protocols` to a protocol, after which a closure owns the connection (RFC 9110 §7.8).
    ///
    /// ```swift
    /// OriginResponse.upgrade(to: "echo") { stream in
    ///     while let bytes = try await stream.read() { try await stream.write(bytes) }
    /// }
    /// ```
    public static func upgrade(
        to protocolName: String, headers: OriginFields = [:],
        _ body: @escaping @Sendable (OriginStream) async throws -> Void
    ) -> OriginResponse {
        var fields: OriginFields = ["Upgrade": protocolName, "Connection": "Upgrade"]
        for (name, value) in headers { fields.append(name, value) }
        return OriginResponse(101, headers: fields).with { $0.takeover = body }
    }

    /// A changed copy of this response: `.text("late").with { $0.delay = .seconds(1) }`.
    public func with(_ change: (inout OriginResponse) -> Void) -> OriginResponse {
        var copy = self
        change(&copy)
        return copy
    }
}

/// The body of a response.
public enum OriginResponseBody: Sendable {
    /// Bytes in memory.
    case bytes([UInt8])
    /// A number of bytes of ``TestPattern`` from an offset on, generated as they are sent, so that even large bodies
    /// take no memory.
    case pattern(UInt64, from: UInt64 = 0)
    /// A range of a file's bytes, read as they are sent. If the file turns out to be shorter, the connection is cut.
    case file(FilePath, range: Range<UInt64>)
    /// Bytes that a closure writes as fast as the client accepts them.
    ///
    /// If their number is given, they are framed by Content-Length, and any other number is an error that cuts the
    /// connection. The closure may read the request's body at the same time. If it throws an ``OriginFault``, the fault
    /// happens immediately; any other error cuts the connection.
    case stream(length: UInt64? = nil, @Sendable (OriginBodyWriter) async throws -> Void)

    /// An empty body.
    public static let empty = OriginResponseBody.bytes([])

    /// The UTF-8 bytes of a text.
    public static func text(_ text: String) -> OriginResponseBody { .bytes(Array(text.utf8)) }

    /// The number of bytes; `nil` if it is not known before the end.
    public var length: UInt64? {
        switch self {
        case .bytes(let bytes): UInt64(bytes.count)
        case .pattern(let count, _): count
        case .file(_, let range): range.upperBound - range.lowerBound
        case .stream(let length, _): length
        }
    }
}

/// An intentional fault of a response. A handler sets one in its response, or throws one.
///
/// A handler that throws a fault with a number of bytes sends a 200 with a body of ``TestPattern`` that is one byte
/// longer. If a ``OriginResponseBody/stream(length:_:)`` throws the fault, the missing bytes are sent first.
///
/// A request body that the handler did not read is recorded before the fault: see ``RecordedRequest/body``.
public struct OriginFault: Error, Sendable, Hashable {
    /// The kind of a fault.
    public enum Kind: Sendable, Hashable {
        /// The connection is closed normally, over TLS with a `close_notify`.
        case close
        /// The connection is closed; over TLS without a `close_notify`, as an attacker would cut it.
        case cut
        /// The connection is reset. The client can read the bytes that were sent before; a network, unlike loopback
        /// and a mock transport, may lose them.
        case reset
        /// Nothing more is sent until the client disconnects or the origin stops.
        case stall
    }

    /// The kind of the fault.
    public var kind: Kind
    /// The number of bytes of the body after which it happens; `nil` for before the head.
    public var bodyByteCount: UInt64?

    /// Creates a fault; by default before the head.
    public init(_ kind: Kind, afterBodyBytes count: UInt64? = nil) { (self.kind, bodyByteCount) = (kind, count) }

    /// The default response for the fault.
    var response: OriginResponse {
        // One byte more than is sent, so that the body is incomplete in its framing, too.
        .pattern(bodyByteCount.map { max($0, $0 &+ 1) } ?? 0).with { $0.fault = self }
    }
}

/// The framing of a response's body (RFC 9112 §6).
public enum OriginFraming: Sendable, Hashable {
    /// Content-Length if the length is known, else chunked; for HTTP/1.0 the end of the connection.
    case automatic
    /// Chunked, with a maximum size of chunks in bytes; `nil` for the pieces as they were written.
    case chunked(size: Int? = nil)
    /// The body ends with the connection.
    case untilClose
}

/// The speed of a response's body.
public struct OriginPacing: Sendable, Hashable {
    /// The number of bytes in a piece, at least 1.
    public var pieceSize: Int
    /// The pause between two pieces.
    public var interval: Duration

    /// Creates a pacing.
    public init(pieceSize: Int, every interval: Duration) {
        (self.pieceSize, self.interval) = (max(1, pieceSize), interval)
    }

    /// An approximate number of bytes per second, in at most ten pieces per second.
    public static func bytesPerSecond(_ rate: Int) -> OriginPacing {
        let rate = max(1, rate)
        return rate < 10
            ? OriginPacing(pieceSize: 1, every: .milliseconds(1000 / rate))
            : OriginPacing(pieceSize: rate / 10, every: .milliseconds(100))
    }
}

/// An interim (1xx) response, sent before the final one (RFC 9110 §15.2).
public struct InterimResponse: Sendable, Hashable {
    /// The status, 100 to 199; a 101 is sent without switching protocols.
    public var status: Int
    /// The header fields.
    public var headers: OriginFields

    /// Creates an interim response.
    public init(_ status: Int, headers: OriginFields = [:]) { (self.status, self.headers) = (status, headers) }

    /// The response `100 Continue`.
    public static let proceed = InterimResponse(100)

    /// `103 Early Hints` (RFC 8297) with a Link field for each value.
    public static func earlyHints(_ links: String...) -> InterimResponse {
        InterimResponse(103, headers: OriginFields(links.map { (name: "Link", value: $0) }))
    }
}
