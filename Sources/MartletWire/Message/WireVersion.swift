/// The version of HTTP/1 a message speaks (RFC 9112 §2.3).
///
/// A minor version above 1 counts as 1.1, as RFC 9110 §2.5 asks. Other major versions are no ``WireVersion``.
package enum WireVersion: Sendable, Hashable {
    /// HTTP/1.0.
    case http10
    /// HTTP/1.1.
    case http11

    /// The text of the version in a start line.
    package var text: StaticString {
        switch self {
        case .http10: "HTTP/1.0"
        case .http11: "HTTP/1.1"
        }
    }
}
