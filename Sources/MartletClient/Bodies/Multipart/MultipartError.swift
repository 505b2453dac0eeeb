public import SystemPackage

/// Why a multipart body could not be made, or not be sent to its end.
public enum MultipartError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A name, file name, content type or field of a part has a byte that may not stand there, such as NUL; the offset is
    /// in bytes of its UTF-8.
    case invalidText(String, offset: Int)
    /// A part's own field has a name that is no token, or one that the form sets itself.
    case invalidFieldName(String)
    /// A file was so many bytes long when the request began, and had another length when it was read.
    case fileChanged(FilePath, expected: UInt64)
    /// The source of a part gave more or less than its length.
    case lengthMismatch(part: String, expected: UInt64)
    /// The source of a part can be read only once, and was read before.
    case partNotReplayable(part: String)

    /// What was wrong, and where.
    public var description: String {
        switch self {
        case .invalidText(let what, let offset): "\(what) has a control character at byte \(offset)"
        case .invalidFieldName(let name): "a part may not have the field “\(name)” of its own"
        case .fileChanged(let path, let expected):
            "\(path) is no longer of the \(expected) bytes it had when the request began"
        case .lengthMismatch(let part, let expected):
            "the source of the part “\(part)” did not give exactly \(expected) bytes"
        case .partNotReplayable(let part):
            "the part “\(part)” can be read only once, and was read before"
        }
    }
}
