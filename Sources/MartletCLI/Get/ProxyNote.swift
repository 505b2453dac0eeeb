import Martlet

/// Says that a proxy the environment names is not used, since proxies are not supported yet.
enum ProxyNote {
    /// A line for standard error; `nil` where no proxy applies.
    static func text(for url: HTTPURL) -> String? {
        text(for: url, variable: { Environment[$0] })
    }

    /// As above, with the variables given.
    static func text(for url: HTTPURL, variable: (String) -> String?) -> String? {
        // `HTTP_PROXY` is set by web servers for their programs from a request's field, so it never counts.
        let names =
            url.scheme == .https
            ? ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
            : ["http_proxy", "all_proxy", "ALL_PROXY"]
        guard let name = names.first(where: { variable($0)?.isEmpty == false }) else { return nil }
        let exceptions = variable("no_proxy") ?? variable("NO_PROXY") ?? ""
        if isExcepted(url, exceptions) { return nil }
        return
            "martlet: \(name) is set, but proxies are not supported yet: connecting to \(url.host) itself\n"
    }

    private static func isExcepted(_ url: HTTPURL, _ list: String) -> Bool {
        list.split(whereSeparator: { $0 == "," || $0 == " " }).contains { entry in
            if entry == "*" { return true }
            if let slash = entry.firstIndex(of: "/") {
                return isWithin(url.host, entry[..<slash], prefix: Int(entry[entry.index(after: slash)...]))
            }
            var name = entry.lowercased()
            if !url.isIPv6Literal, let colon = name.lastIndex(of: ":") {
                guard name[name.index(after: colon)...] == "\(url.port)" else { return false }
                name = String(name[..<colon])
            }
            if name.hasPrefix("[") && name.hasSuffix("]") { name = String(name.dropFirst().dropLast()) }
            let bare = name.drop { $0 == "." || $0 == "*" }
            return !bare.isEmpty && (url.host == bare || url.host.hasSuffix(".\(bare)"))
        }
    }

    /// Whether an IPv4 address lies in a network.
    private static func isWithin(_ host: String, _ network: Substring, prefix: Int?) -> Bool {
        guard let prefix, (0...32).contains(prefix), let address = number(host[...]),
            let base = number(network)
        else {
            return false
        }
        let mask: UInt32 = prefix == 0 ? 0 : ~UInt32(0) << (32 - UInt32(prefix))
        return address & mask == base & mask
    }

    private static func number(_ text: Substring) -> UInt32? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false).map { UInt8($0) }
        guard parts.count == 4 else { return nil }
        return parts.reduce(UInt32?(0)) { sum, part in
            guard let sum, let part else { return nil }
            return sum << 8 | UInt32(part)
        }
    }
}
