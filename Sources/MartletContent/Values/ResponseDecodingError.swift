/// Why an answer made no value, where a decoder of Martlet's own says so.
public enum ResponseDecodingError: Error, Sendable, CustomStringConvertible {
    /// The `charset` of the content type is none that Martlet decodes.
    case unknownCharset(String)
    /// A byte makes no sense in the text's encoding; offsets are counted from 0.
    case malformedText(charset: String, offset: Int)
    /// There was to be no body.
    case bodyNotEmpty(byteCount: Int)
    /// None of several decoders made a value: what each had to say, in their order.
    case noDecoderSucceeded([any Error])

    /// What was wrong, and where.
    public var description: String {
        switch self {
        case .unknownCharset(let label): "the charset “\(label.prefix(100))” is not known"
        case .malformedText(let charset, let offset):
            "byte \(offset) of the text makes no sense in \(charset)"
        case .bodyNotEmpty(let byteCount): "the body was to be empty, and has \(byteCount) bytes"
        case .noDecoderSucceeded(let errors):
            "no decoder succeeded: " + errors.map { "\($0)" }.joined(separator: "; ")
        }
    }
}
