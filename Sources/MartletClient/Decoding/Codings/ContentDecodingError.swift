/// Why a body could not be decoded. All of them are the peer's doing except ``outOfMemory``.
package enum ContentDecodingError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The body ended before its coding did, whatever Content-Length said.
    case truncated(ContentCoding)
    /// The first bytes are not those of the coding.
    case invalidHeader(ContentCoding)
    /// The compressed data contradicts itself, or asks for more than it may; mostly the decoder's own words.
    case corrupt(ContentCoding, reason: String)
    /// The data decoded, but its checksum differs.
    case checksumMismatch(ContentCoding)
    /// The data decoded, but a gzip member states another length.
    case lengthMismatch(ContentCoding)
    /// Bytes follow the end of the data that are neither a gzip member nor zero padding.
    case trailingData(ContentCoding)
    /// `Content-Encoding` names a coding Martlet does not know, and such bodies are refused.
    case unknownCoding(String)
    /// `Content-Encoding` lists more codings than allowed.
    case tooManyCodings(limit: Int)
    /// The decoded body is larger than ``DecompressionLimits/maximumByteCount``.
    case tooLarge(limit: Int)
    /// The body expands by more than ``DecompressionLimits/maximumRatio``.
    case ratioExceeded(limit: Int)
    /// The decoder could not get its memory.
    case outOfMemory

    /// Whether it lies in the body as it is, a bomb included, so that it makes no sense to whoever reads it: not in how large
    /// a body this reader wants, nor in this process.
    package var isOfBody: Bool {
        switch self {
        case .truncated, .invalidHeader, .corrupt, .checksumMismatch, .lengthMismatch, .trailingData,
            .ratioExceeded:
            true
        case .unknownCoding, .tooManyCodings, .tooLarge, .outOfMemory: false
        }
    }

    /// What happened, as a sentence without a full stop.
    package var description: String {
        switch self {
        case .truncated(let coding): "the \(coding) body ends too early"
        case .invalidHeader(let coding): "the body does not begin like \(coding)"
        case .corrupt(let coding, let reason): "the \(coding) body is corrupt: \(reason)"
        case .checksumMismatch(let coding): "the \(coding) body does not match its checksum"
        case .lengthMismatch(let coding): "the \(coding) body does not match its stated length"
        case .trailingData(let coding): "bytes follow the end of the \(coding) body"
        case .unknownCoding(let name): "the content coding \(name) is unknown"
        case .tooManyCodings(let limit): "the body has more than \(limit) content codings"
        case .tooLarge(let limit): "the decoded body is larger than \(limit) bytes"
        case .ratioExceeded(let limit): "the body expands by more than \(limit) to 1"
        case .outOfMemory: "there is no memory to decode the body"
        }
    }
}
