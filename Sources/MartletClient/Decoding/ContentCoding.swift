/// A content coding Martlet can undo (RFC 9110 §8.4.1).
package enum ContentCoding: String, Hashable, Sendable, CaseIterable {
    /// RFC 1952, one or more members; `x-gzip` is the same.
    case gzip
    /// RFC 1950 (zlib), or RFC 1951 alone as many servers send it.
    case deflate

    /// The coding of a name, in any case; nil when Martlet does not know it.
    package init?(name: some StringProtocol) {
        switch name.lowercased() {
        case "gzip", "x-gzip": self = .gzip
        case "deflate": self = .deflate
        default: return nil
        }
    }
}
