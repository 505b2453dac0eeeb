/// An error of Martlet's own decoders of responses.
public enum ResponseDecodingError: Error, Sendable, CustomStringConvertible {
    /// Martlet does not decode the `charset` of the content type.
    case unknownCharset(String)
    /// A byte is invalid in the text's encoding. The offset is counted from 0.
    case malformedText(charset: String, offset: Int)
    /// A body was received where only an empty one is allowed.
    case bodyNotEmpty(byteCount: Int)
    /// All of several decoders failed, with these errors in their order.
    case noDecoderSucceeded([any Error])

    /// The error and its position, as text.
    public var description: String {
        switch self {
        case .unknownCharset(let label): "the charset “\(label.prefix(100))” is not known"
        case .malformedText(let charset, let offset): "byte \(offset) of the text is invalid in \(charset)"
        case .bodyNotEmpty(let byteCount): "the body should be empty, but has \(byteCount) bytes"
        case .noDecoderSucceeded(let errors): "no decoder succeeded: " + errors.map { "\($0)" }.joined(separator: "; ")
        }
    }
}
