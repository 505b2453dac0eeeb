/// The limits of received messages, and the leniency of the parser.
///
/// Every limit applies even to an incomplete message, so a peer that never completes a line or a head is rejected at
/// the limit. Values below zero count as zero.
public struct WireLimits: Sendable, Hashable, Codable {
    /// The maximum size of a message head in bytes, start line and final empty line included. The default is 256 KiB
    /// (curl allows 300 KiB). It prevents an endless head from filling memory.
    public var headByteLimit = 256 * 1024
    /// The maximum size of a line of a head or trailer section in bytes, its end included. The default is 64 KiB.
    public var lineByteLimit = 64 * 1024
    /// The maximum number of lines of a head or trailer section, the start line and the final empty line included. The
    /// default is 1,000. It stops a flood of tiny fields, each of which costs more memory than its bytes.
    ///
    /// Larger values count as 65,000, because the types that hold fields trap at 65,535.
    public var lineCountLimit = 1000
    /// The largest ``lineCountLimit`` that has an effect.
    static let lineCountMaximum = 65_000
    /// The maximum number of informational (1xx) responses before the final one. The default is 10 (Go allows 5). It
    /// stops a peer that never sends the final response. Progress of an upload (104) does not count for calls that
    /// receive it.
    public var informationalResponseLimit = 10
    /// The maximum size of all chunk extensions of a message in bytes. The default is 16 KiB. It stops chunks of one
    /// byte with large extensions.
    public var chunkExtensionByteLimit = 16 * 1024
    /// The maximum size of the trailer section of a chunked message in bytes, the final empty line included. The
    /// default is 16 KiB. It stops trailers that never end.
    public var trailerByteLimit = 16 * 1024
    /// The maximum number of hexadecimal digits of a chunk size, leading zeros included. The default is 16; larger
    /// values count as 16. It stops overflow, and megabytes of leading zeros.
    public var chunkSizeDigitLimit = 16
    /// Whether a bare LF ends a line of a head (RFC 9112 §2.2). The default is `true`, because many servers need it.
    ///
    /// It never applies to chunk-size lines, chunk footers and trailers, where it has allowed request smuggling
    /// (CVE-2025-22871), nor with ``isStrict``.
    public var toleratesBareLineFeed = true
    /// Whether deviations that RFC 9112 allows a recipient to repair are errors. The default is `false`.
    ///
    /// If `true`, Transfer-Encoding together with Content-Length, obsolete line folding, a bare LF, empty lines before
    /// the start line and blanks after a chunk size are errors.
    public var isStrict = false
    /// The default limits.
    public static let `default` = WireLimits()

    /// Creates limits with the default values.
    public init() {}

    /// Decodes limits. Missing ones have their default.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        func value<Value: Decodable>(_ key: CodingKeys, or standard: Value) throws -> Value {
            try container.decodeIfPresent(Value.self, forKey: key) ?? standard
        }
        self.init()
        headByteLimit = try value(.headByteLimit, or: headByteLimit)
        lineByteLimit = try value(.lineByteLimit, or: lineByteLimit)
        lineCountLimit = try value(.lineCountLimit, or: lineCountLimit)
        informationalResponseLimit = try value(.informationalResponseLimit, or: informationalResponseLimit)
        chunkExtensionByteLimit = try value(.chunkExtensionByteLimit, or: chunkExtensionByteLimit)
        trailerByteLimit = try value(.trailerByteLimit, or: trailerByteLimit)
        chunkSizeDigitLimit = try value(.chunkSizeDigitLimit, or: chunkSizeDigitLimit)
        toleratesBareLineFeed = try value(.toleratesBareLineFeed, or: toleratesBareLineFeed)
        isStrict = try value(.isStrict, or: isStrict)
    }
}
