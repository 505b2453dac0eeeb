/// The part of an origin that a challenge is for, by the beginnings of paths (RFC 7616 §3.3, RFC 7617 §2.2).
struct ProtectionSpace: Hashable, Sendable {
    /// What paths in it begin with; `nil` for the whole origin.
    let prefixes: [String]?

    /// The most prefixes that are kept of a `domain`.
    private static let prefixLimit = 32

    /// The whole of an origin, or of what lies behind a proxy.
    static let whole = ProtectionSpace(prefixes: nil)

    private init(prefixes: [String]?) {
        self.prefixes = prefixes
    }

    /// What a `domain` of Digest's names at the origin it came from. What it names elsewhere is passed over: credentials
    /// never leave the origin they were given for, whatever a server says.
    init(domain: [String], at origin: HTTPURL.Origin) {
        guard !domain.isEmpty else {
            self = .whole
            return
        }
        var prefixes: [String] = []
        for reference in domain.prefix(ProtectionSpace.prefixLimit) {
            if reference.utf8.first == UInt8(ascii: "/"), !reference.hasPrefix("//") {
                prefixes.append(reference)
            } else if let url = try? HTTPURL(reference), url.origin == origin {
                prefixes.append(url.requestTarget)
            }
        }
        self.prefixes = prefixes
    }

    /// The paths at and below that of a request which Basic let through: everything to its last slash.
    init(around path: String) {
        guard
            let slash = path.utf8.prefix(while: { $0 != UInt8(ascii: "?") }).lastIndex(of: UInt8(ascii: "/"))
        else {
            prefixes = [path]
            return
        }
        prefixes = [String(path[...slash])]
    }

    /// Whether a path, with its query, is in it.
    func contains(_ path: String) -> Bool {
        guard let prefixes else { return true }
        return prefixes.contains { path.utf8.starts(with: $0.utf8) }
    }
}
