/// Why bytes are no image that is known, sound and within the limits.
public struct ImageError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What is wrong. More may be added: a `switch` needs a default.
    public enum Code: String, Hashable, Sendable {
        /// The first bytes are those of no format that is known.
        case unknownFormat
        /// A part of the file breaks the rules of its format.
        case malformed
        /// The file ends before its size is known, or, where pixels are asked for, before they are complete.
        case truncated
        /// More than ``ImageLimits`` allow.
        case limitExceeded
        /// The format, or a variety of it, is known and its pixels cannot be decoded.
        case unsupported
        /// The system refused the memory.
        case outOfMemory
    }

    /// What is wrong.
    public var code: Code
    /// The format, where it is known.
    public var format: ImageFormat?
    /// Where in the file it was noticed, in bytes from its beginning; nil where only the decoder noticed it.
    public var byteOffset: Int?
    /// What is wrong, in words.
    public var message: String

    /// An error.
    public init(_ code: Code, format: ImageFormat? = nil, at byteOffset: Int? = nil, _ message: String) {
        self.code = code
        self.format = format
        self.byteOffset = byteOffset
        self.message = message
    }

    /// The format, the place, the message and the code.
    public var description: String {
        let kind = format.map { "\($0.rawValue): " } ?? ""
        let place = byteOffset.map { "at byte \($0): " } ?? ""
        return "\(kind)\(place)\(message) (\(code.rawValue))"
    }
}
