/// A content coding Martlet can undo (RFC 9110 §8.4.1).
package enum ContentCoding: String, Hashable, Sendable, CaseIterable {
    /// RFC 1952, one or more members; `x-gzip` is the same.
    case gzip
    /// RFC 1950 (zlib), or RFC 1951 alone as many servers send it.
    case deflate
    #if Brotli
        /// RFC 7932. There with the package trait `Brotli`.
        case brotli = "br"
    #endif
    #if Zstandard
        /// RFC 8878, one or more frames, whose windows are of 8 MiB at most (RFC 9659). There with the package trait
        /// `Zstandard`.
        case zstandard = "zstd"
    #endif

    /// The coding of a name, in any case; nil when Martlet does not know it.
    package init?(name: some StringProtocol) {
        switch name.lowercased() {
        case "gzip", "x-gzip": self = .gzip
        case "deflate": self = .deflate
        #if Brotli
            case "br": self = .brotli
        #endif
        #if Zstandard
            case "zstd": self = .zstandard
        #endif
        default: return nil
        }
    }

    /// What `Accept-Encoding` says: all codings that can be undone (RFC 9110 §12.5.3).
    package static let acceptedNames = allCases.map(\.rawValue).joined(separator: ", ")
}
