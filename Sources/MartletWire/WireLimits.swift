/// What one message may cost a reader before it is refused, and which leniencies apply.
///
/// Every limit is enforced while the message is still incomplete, so a peer that never finishes a line or a
/// head is refused at the limit and not at the end of its patience. Values below zero count as zero.
public struct WireLimits: Sendable, Hashable, Codable {
    /// The most bytes a message head may have, start line and final empty line included.
    ///
    /// Unit: bytes. Default: 256 KiB (curl allows 300 KiB). Stops a peer that fills memory with an endless
    /// head.
    public var headByteLimit = 256 * 1024

    /// The most bytes one line of a head or trailer section may have, its line end included.
    ///
    /// Unit: bytes. Default: 64 KiB. Stops a peer that sends one endless line.
    public var lineByteLimit = 64 * 1024

    /// The most lines a head or trailer section may have, the start line and the final empty line included.
    ///
    /// Unit: lines, at most 65,000; larger values count as that, since the types that hold fields end the
    /// process at 65,535. Default: 1,000. Stops a flood of tiny fields whose bookkeeping costs more than
    /// their bytes.
    public var lineCountLimit = 1000

    /// The largest ``lineCountLimit`` that has an effect.
    static let lineCountMaximum = 65_000

    /// The most informational (1xx) responses before the final one.
    ///
    /// Unit: responses. Default: 10 (Go allows 5). Stops a peer that answers for ever without answering.
    public var informationalResponseLimit = 10

    /// The most bytes of chunk extensions, summed over all chunks of a message.
    ///
    /// Unit: bytes a message. Default: 16 KiB. Stops payloads of one byte that each carry a large extension.
    public var chunkExtensionByteLimit = 16 * 1024

    /// The most bytes the trailer section of a chunked message may have, the final empty line included.
    ///
    /// Unit: bytes a message. Default: 16 KiB. Stops a body that ends but whose trailers do not.
    public var trailerByteLimit = 16 * 1024

    /// The most hexadecimal digits of a chunk size, leading zeros included.
    ///
    /// Unit: digits, at most 16. Default: 16. Stops overflow, and megabytes of leading zeros.
    public var chunkSizeDigitLimit = 16

    /// Whether a bare LF ends a line of a head (RFC 9112 §2.2).
    ///
    /// Default: true, because many servers in the wild need it. It never applies to chunk-size lines, chunk
    /// footers and trailers, where it opened the door to request smuggling (CVE-2025-22871), nor when
    /// ``isStrict``.
    public var toleratesBareLineFeed = true

    /// Whether what RFC 9112 lets a reader mend is an error instead.
    ///
    /// Default: false. When true: Transfer-Encoding together with Content-Length, obsolete line folding, a
    /// bare LF, empty lines before the start line and blanks after a chunk size are errors.
    public var isStrict = false

    /// The defaults of every limit.
    public static let `default` = WireLimits()

    /// Makes the default limits, to be changed one by one.
    public init() {}
}

/// What was cut off when the stream ended too early (RFC 9112 §8).
package enum Truncation: Equatable, Sendable, CustomStringConvertible {
    /// The head was incomplete.
    ///
    /// - Parameter received: bytes of the head that came.
    case head(received: Int)
    /// A body of known length was short.
    ///
    /// - Parameters:
    ///   - expected: bytes that Content-Length announced.
    ///   - received: bytes of the body that came.
    case length(expected: UInt64, received: UInt64)
    /// A chunked body ended before its last chunk and the empty line after its trailers.
    ///
    /// - Parameter received: bytes of payload that came.
    case chunked(received: UInt64)
    /// A body that ends with the connection was not ended by an orderly close.
    ///
    /// - Parameter received: bytes of the body that came.
    case untilClose(received: UInt64)

    /// What was cut off and after how many bytes, as a sentence for people.
    package var description: String {
        switch self {
        case .head(let received): "the stream ended inside the head, after \(received) bytes of it"
        case .length(let expected, let received):
            "the stream ended after \(received) of \(expected) bytes of the body"
        case .chunked(let received):
            "the stream ended before the last chunk, after \(received) bytes of the body"
        case .untilClose(let received):
            "the stream broke off without an orderly close, after \(received) bytes of the body"
        }
    }
}
