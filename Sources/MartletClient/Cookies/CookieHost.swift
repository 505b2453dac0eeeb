import MartletWire

/// A host as cookies know it: the text of ``HTTPURL/host``, and whether it is an address.
struct CookieHost: Hashable, Sendable {
    /// Lower case, A-labels, no brackets.
    let text: String
    /// Whether it is an IP address, which has no parent and nothing below it.
    let isAddress: Bool

    /// The host of an address.
    init(_ url: HTTPURL) {
        text = url.host
        isAddress = url.isIPLiteral
    }

    /// A host in any spelling, with or without a leading dot; nil when it is none.
    init?(_ spelling: String) {
        var bytes = Array(spelling.utf8)[...]
        if bytes.first == UInt8(ascii: "."), bytes.count > 1 { bytes = bytes.dropFirst() }
        guard !bytes.isEmpty else { return nil }
        let host: URLHost?
        if bytes.contains(UInt8(ascii: ":")) {
            if bytes.first == UInt8(ascii: "["), bytes.last == UInt8(ascii: "]") {
                bytes = bytes.dropFirst().dropLast()
            }
            host = try? URLHost(ipv6: bytes)
        } else {
            host = try? URLHost(name: bytes)
        }
        guard let host else { return nil }
        text = host.text
        isAddress = host.kind != .name
    }

    /// A host in its final form.
    init(canonical text: String) {
        self.text = text
        // No name that parses ends in a label of digits, and only IPv6 has colons.
        let lastLabel = text.utf8.split(separator: UInt8(ascii: ".")).last
        isAddress =
            text.utf8.contains(UInt8(ascii: ":")) || (lastLabel?.allSatisfy(ByteClass.isDigit) ?? false)
    }

    /// Whether it is this machine: `localhost` and names below it, 127.0.0.0/8, ::1 (RFC 6761 §6.3).
    var isLoopback: Bool {
        isAddress
            ? text == "::1" || text.utf8.starts(with: "127.".utf8)
            : matches(domain: "localhost") || matches(domain: "localhost.")
    }

    /// Whether it is a domain, or a name below it (RFC 6265bis §5.1.3).
    func matches(domain: String) -> Bool {
        let host = text.utf8
        let domain = domain.utf8
        guard host.count > domain.count else { return host.elementsEqual(domain) }
        guard !isAddress, !domain.isEmpty else { return false }
        let rest = host.dropLast(domain.count)
        return rest.last == UInt8(ascii: ".") && host.suffix(domain.count).elementsEqual(domain)
    }
}
