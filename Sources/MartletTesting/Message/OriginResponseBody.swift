public import SystemPackage

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
    ) -> OriginResponseBody {
        OriginResponseBody(content: .stream(length: length, body))
    }

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
