/// What an origin tells of a file's version.
public enum FileValidators: Sendable, Hashable {
    /// A strong entity tag and Last-Modified.
    case strong
    /// A weak entity tag and Last-Modified.
    case weak
    /// Last-Modified alone.
    case lastModifiedOnly
    /// Nothing.
    case none
}
