public import FoundationEssentials

/// A segment of a path: a string, an integer, a `UUID`, or a type of the program, such as the identifier of a user.
///
/// In a URL, all characters of a segment are percent-encoded except letters, digits and `-._~`, so that it stays one
/// segment. An empty segment, `.` and `..` are rejected, because they would name another resource.
public protocol HTTPPathSegment: Sendable {
    /// The text of the segment, before it is percent-encoded.
    var pathSegment: String { get }
}

extension HTTPPathSegment where Self: CustomStringConvertible {
    /// The description of the value.
    public var pathSegment: String { description }
}

extension String: HTTPPathSegment {}
extension Substring: HTTPPathSegment {}
extension Int: HTTPPathSegment {}
extension Int32: HTTPPathSegment {}
extension Int64: HTTPPathSegment {}
extension UInt: HTTPPathSegment {}
extension UInt32: HTTPPathSegment {}
extension UInt64: HTTPPathSegment {}
extension UUID: HTTPPathSegment {}

extension Array: HTTPTarget where Element: HTTPPathSegment {
    /// The segments of a path of a host, such as `["issues", id]` with a string. Segments of several types are written
    /// `.path("issues", 42)`.
    public var httpTarget: HTTPTargetForm { .segments(map { $0.pathSegment }) }
}

extension HTTPTarget where Self == HTTPTargetForm {
    /// Creates the path of a host from its segments: `try await api.get(.path("users", 42))`.
    public static func path(_ segments: any HTTPPathSegment...) -> HTTPTargetForm {
        .segments(segments.map { $0.pathSegment })
    }
}

extension HTTPURL {
    /// Returns the same URL with segments added to the end of its path: `try url.appending("users", 42)`.
    ///
    /// A slash at the end of the path is not doubled. The query and the fragment are preserved.
    /// - Throws: A ``ParseError``: ``ParseError/Code/invalidSegment`` for an empty segment, `.` and `..`;
    ///   ``ParseError/Code/tooLong`` above ``lengthLimit``.
    public func appending(_ segments: any HTTPPathSegment...) throws(ParseError) -> HTTPURL {
        try appending(segments: segments.map { $0.pathSegment })
    }
}
