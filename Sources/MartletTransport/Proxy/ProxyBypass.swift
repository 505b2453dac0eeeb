/// The servers that are reached without a proxy: the list in `no_proxy`, with the same meaning as in curl.
///
/// Entries are separated by commas or white space:
/// - `example.com`, `.example.com` and `*.example.com`: the name itself and every name below it, on whole labels.
/// - `192.0.2.1`, `2001:db8::1`: that address, if the URL has an address.
/// - `10.0.0.0/8`, `fe80::/10`: all addresses with this prefix of 8 or 10 bits.
/// - `*`: every server.
///
/// An entry other than `*` may end with a colon and a port (an IPv6 address is then in brackets), and matches only that
/// port. Letter case and a trailing dot are ignored. Names are not resolved. An invalid entry matches nothing.
public struct ProxyBypass: Hashable, Sendable {
    private struct Entry: Hashable, Sendable {
        enum Pattern: Hashable, Sendable {
            case everything
            /// In lower case, without dots at its ends.
            case name(String)
            /// All addresses of the same length that share this number of leading bits.
            case network([UInt8], bitCount: Int)
        }

        var pattern: Pattern
        var port: Int?

        var text: String {
            let place =
                switch pattern {
                case .everything: "*"
                case .name(let name): name
                case .network(let bytes, let bitCount) where bytes.count == 4:
                    bytes.map { String($0) }.joined(separator: ".") + "/\(bitCount)"
                case .network(let bytes, let bitCount): "[\(IPv6Groups.text(of: bytes))]/\(bitCount)"
                }
            return port.map { "\(place):\($0)" } ?? place
        }
    }

    /// The list of the valid entries, separated by commas.
    package var text: String { entries.map(\.text).joined(separator: ",") }

    private let entries: [Entry]

    /// Parses a list.
    public init(_ list: String) {
        entries = list.utf8.split { $0 == UInt8(ascii: ",") || $0 == 0x20 || (0x09...0x0D).contains($0) }.compactMap {
            ProxyBypass.entry(String(decoding: $0, as: UTF8.self))
        }
    }

    /// The empty list: all servers are reached through the proxy.
    public static let none = ProxyBypass("")

    /// Whether no server matches.
    public var isEmpty: Bool { entries.isEmpty }

    /// Whether a server matches.
    /// - Parameters:
    ///   - host: The server's name, or its address with or without brackets.
    ///   - port: The server's port.
    public func contains(host: String, port: Int) -> Bool {
        guard !entries.isEmpty else { return false }
        let name = ProxyBypass.trimmed(ProxyBypass.withoutBrackets(host.lowercased()[...]))
        let address = SocketAddress(literal: String(name), port: 0)?.addressBytes
        return entries.contains { entry in
            if let only = entry.port, only != port { return false }
            switch entry.pattern {
            case .everything: return true
            case .name(let suffix):
                // A dot within an address does not separate labels.
                return address == nil && ProxyBypass.isName(name, within: suffix)
            case .network(let network, let bitCount):
                return address.map { ProxyBypass.isAddress($0, within: network, bitCount: bitCount) } ?? false
            }
        }
    }

    private static func isName(_ name: Substring, within suffix: String) -> Bool {
        let (name, suffix) = (name.utf8, suffix.utf8)
        guard name.count > suffix.count else { return name.elementsEqual(suffix) }
        return name.suffix(suffix.count).elementsEqual(suffix) && name.dropLast(suffix.count).last == UInt8(ascii: ".")
    }

    private static func isAddress(_ address: [UInt8], within network: [UInt8], bitCount: Int) -> Bool {
        guard address.count == network.count else { return false }
        let whole = bitCount / 8
        guard address.prefix(whole) == network.prefix(whole) else { return false }
        let rest = bitCount % 8
        return rest == 0 || (address[whole] ^ network[whole]) >> UInt8(8 - rest) == 0
    }

    private static func entry(_ text: String) -> Entry? {
        if text == "*" { return Entry(pattern: .everything) }
        var rest = text.lowercased()[...]
        var port: Int?
        // An IPv6 address without brackets has more than one colon, and no port.
        let isBare = rest.first != "[" && rest.utf8.count(where: { $0 == UInt8(ascii: ":") }) > 1
        if !isBare, let colon = rest.lastIndex(of: ":"), !rest[colon...].contains("]") {
            guard let number = number(rest[rest.index(after: colon)...]), (1...65_535).contains(number) else {
                return nil
            }
            port = number
            rest = rest[..<colon]
        }
        var bitCount: Int?
        if let slash = rest.firstIndex(of: "/") {
            guard let number = number(rest[rest.index(after: slash)...]) else { return nil }
            bitCount = number
            rest = rest[..<slash]
        }
        rest = withoutBrackets(rest)
        if let address = SocketAddress(literal: String(rest), port: 0)?.addressBytes {
            let bitCount = bitCount ?? address.count * 8
            guard bitCount <= address.count * 8 else { return nil }
            return Entry(pattern: .network(address, bitCount: bitCount), port: port)
        }
        guard bitCount == nil else { return nil }
        if rest.hasPrefix("*.") { rest = rest.dropFirst() }
        if rest.first == "." { rest = rest.dropFirst() }
        let name = trimmed(rest)
        return name.isEmpty ? nil : Entry(pattern: .name(String(name)), port: port)
    }

    /// Parses a number of one to five digits.
    private static func number(_ text: Substring) -> Int? {
        let isPlain = text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        return isPlain && (1...5).contains(text.utf8.count) ? Int(text) : nil
    }

    private static func withoutBrackets(_ text: Substring) -> Substring {
        text.hasPrefix("[") && text.hasSuffix("]") ? text.dropFirst().dropLast() : text
    }

    /// Removes the dot at the end of a fully qualified name.
    private static func trimmed(_ name: Substring) -> Substring { name.hasSuffix(".") ? name.dropLast() : name }
}
