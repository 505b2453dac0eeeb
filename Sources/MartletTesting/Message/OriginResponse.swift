import FoundationEssentials
public import SystemPackage

/// What a handler of the test origin answers.
public struct OriginResponse: Sendable {
    /// 200...999; interim ones go into ``interim``.
    public var status: Int
    /// The reason phrase; `nil` for the usual one of the status.
    public var reason: String?
    /// The fields, sent in this order and with repetitions. A Content-Length or Transfer-Encoding among them
    /// replaces the framing that the origin would add, and the body is then sent as it is.
    public var fields: OriginFields
    /// The body. It is left out where the method or the status allows none (RFC 9112 §6.3).
    public var body: OriginResponseBody
    /// How the body's length is told.
    public var framing = OriginFraming.automatic
    /// Fields behind the body; they are sent with chunked framing only.
    public var trailers = OriginFields()
    /// Responses sent before this one.
    public var interim: [InterimResponse] = []
    /// Whether the connection is closed behind it. `false`: as the client wishes.
    public var closesConnection = false
    /// Whether the status line says HTTP/1.0.
    public var claimsHTTP10 = false
    /// A pause before the head; a client that leaves ends it.
    public var delay = Duration.zero
    /// How fast the body is sent; `nil`: as fast as the client takes it.
    public var pacing: OriginPacing?
    /// What goes wrong on purpose.
    public var fault: OriginFault?

    /// A response.
    public init(_ status: Int = 200, fields: OriginFields = [:], body: OriginResponseBody = .empty) {
        self.status = status
        self.fields = fields
        self.body = body
    }

    /// Text, as `text/plain` in UTF-8.
    public static func text(_ text: String, status: Int = 200) -> OriginResponse {
        OriginResponse(status, fields: ["Content-Type": "text/plain; charset=utf-8"], body: .text(text))
    }

    /// Text that is JSON already.
    public static func json(text: String, status: Int = 200) -> OriginResponse {
        OriginResponse(status, fields: ["Content-Type": "application/json"], body: .text(text))
    }

    /// A value encoded as JSON, with its keys in order.
    /// - Throws: What the encoder throws.
    public static func json(_ value: some Encodable, status: Int = 200) throws -> OriginResponse {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let bytes = try encoder.encode(value)
        return OriginResponse(
            status, fields: ["Content-Type": "application/json"], body: .bytes([UInt8](bytes)))
    }

    /// Bytes of a type.
    public static func bytes(_ bytes: [UInt8], type: String = "application/octet-stream") -> OriginResponse {
        OriginResponse(200, fields: ["Content-Type": type], body: .bytes(bytes))
    }

    /// So many bytes of ``TestPattern``.
    public static func pattern(_ count: UInt64) -> OriginResponse {
        OriginResponse(200, fields: ["Content-Type": "application/octet-stream"], body: .pattern(count))
    }

    /// Bytes that are compressed already, with the name of their coding: the origin itself compresses
    /// nothing.
    public static func encoded(
        _ bytes: [UInt8], coding: String, type: String = "text/plain; charset=utf-8"
    ) -> OriginResponse {
        OriginResponse(
            200, fields: ["Content-Type": type, "Content-Encoding": coding, "Vary": "Accept-Encoding"],
            body: .bytes(bytes))
    }

    /// A redirect.
    public static func redirect(to location: String, status: Int = 302) -> OriginResponse {
        OriginResponse(status, fields: ["Location": location])
    }

    /// This response, after a change: `.text("late").with { $0.delay = .seconds(1) }`.
    public func with(_ change: (inout OriginResponse) -> Void) -> OriginResponse {
        var copy = self
        change(&copy)
        return copy
    }
}

/// The body of a response: what it is made of, and its length where that is known.
public struct OriginResponseBody: Sendable {
    enum Content: Sendable {
        case bytes([UInt8])
        case pattern(offset: UInt64, count: UInt64)
        case file(FilePath, Range<UInt64>)
        case stream(length: UInt64?, @Sendable (OriginBodyWriter) async throws -> Void)
    }

    let content: Content

    /// No bytes.
    public static let empty = OriginResponseBody(content: .bytes([]))

    /// These bytes.
    public static func bytes(_ bytes: [UInt8]) -> OriginResponseBody {
        OriginResponseBody(content: .bytes(bytes))
    }

    /// The UTF-8 bytes of a text.
    public static func text(_ text: String) -> OriginResponseBody {
        OriginResponseBody(content: .bytes(Array(text.utf8)))
    }

    /// Bytes of ``TestPattern``, made as they are sent, so that any length takes no memory.
    /// - Parameters:
    ///   - count: How many.
    ///   - offset: The place in the pattern of the first one.
    public static func pattern(_ count: UInt64, from offset: UInt64 = 0) -> OriginResponseBody {
        OriginResponseBody(content: .pattern(offset: offset, count: count))
    }

    /// Bytes of a file, read as they are sent.
    /// - Parameters:
    ///   - path: The file.
    ///   - range: Which bytes; a file that turns out shorter cuts the connection.
    public static func file(_ path: FilePath, range: Range<UInt64>) -> OriginResponseBody {
        OriginResponseBody(content: .file(path, range))
    }

    /// Bytes that a closure writes, as fast as the client takes them.
    /// - Parameters:
    ///   - length: How many there will be, if known: they are then framed by Content-Length, and any other
    ///     number of them is an error that cuts the connection.
    ///   - body: Writes them. It may read the request's body as it goes. An ``OriginFault`` thrown by it
    ///     happens at once; any other error cuts the connection.
    public static func stream(
        length: UInt64? = nil, _ body: @escaping @Sendable (OriginBodyWriter) async throws -> Void
    ) -> OriginResponseBody { OriginResponseBody(content: .stream(length: length, body)) }

    /// How many bytes there are; `nil` when only the end will tell.
    public var length: UInt64? {
        switch content {
        case .bytes(let bytes): UInt64(bytes.count)
        case .pattern(_, let count): count
        case .file(_, let range): range.upperBound - range.lowerBound
        case .stream(let length, _): length
        }
    }
}

/// How a response goes wrong on purpose. A handler puts one into its response, or throws one.
public struct OriginFault: Error, Sendable, Hashable {
    /// What happens.
    public enum Kind: Sendable, Hashable {
        /// The connection is closed in order, over TLS with a `close_notify`.
        case close
        /// The connection is closed; over TLS without a `close_notify`, as an attacker would cut it.
        case cut
        /// The connection is reset.
        case reset
        /// Nothing more is sent, until the client leaves or the origin stops.
        case stall
    }

    /// What happens.
    public var kind: Kind
    /// After how many bytes of the body it happens; `nil`: before the head.
    public var bodyByteCount: UInt64?

    /// A fault; by default before the head.
    public init(_ kind: Kind, afterBodyBytes count: UInt64? = nil) {
        self.kind = kind
        bodyByteCount = count
    }
}

/// How the length of a response's body is told to the client (RFC 9112 §6).
public enum OriginFraming: Sendable, Hashable {
    /// Content-Length where the length is known, else chunked; for HTTP/1.0 the end of the connection.
    case automatic
    /// Chunked, in chunks of at most so many bytes; `nil` leaves them as they were written.
    case chunked(size: Int? = nil)
    /// The body ends with the connection.
    case untilClose
}

/// How fast a response's body is sent.
public struct OriginPacing: Sendable, Hashable {
    /// Bytes sent at once, at least 1.
    public var pieceSize: Int
    /// The pause between two pieces.
    public var interval: Duration

    /// Pieces of so many bytes with a pause between them.
    public init(pieceSize: Int, every interval: Duration) {
        self.pieceSize = max(1, pieceSize)
        self.interval = interval
    }

    /// About so many bytes a second, in at most ten pieces a second.
    public static func bytesPerSecond(_ rate: Int) -> OriginPacing {
        let rate = max(1, rate)
        return rate < 10
            ? OriginPacing(pieceSize: 1, every: .milliseconds(1000 / rate))
            : OriginPacing(pieceSize: rate / 10, every: .milliseconds(100))
    }
}

/// A response before the final one (RFC 9110 §15.2).
public struct InterimResponse: Sendable, Hashable {
    /// 100 to 199; 101 is sent as it is, without switching anything.
    public var status: Int
    /// Its fields.
    public var fields: OriginFields

    /// An interim response.
    public init(_ status: Int, fields: OriginFields = [:]) {
        self.status = status
        self.fields = fields
    }

    /// `100 Continue`.
    public static let proceed = InterimResponse(100)

    /// `103 Early Hints` (RFC 8297) with a Link field for each value.
    public static func earlyHints(_ links: String...) -> InterimResponse {
        var fields = OriginFields()
        for link in links { fields.append("Link", link) }
        return InterimResponse(103, fields: fields)
    }
}
