/// The name a client expects its peer to prove: a host name, or an address.
enum PeerName: Equatable {
    /// A host name in ASCII and lower case, without a trailing dot: checked, and sent as SNI (RFC 6066 §3).
    case host(String)
    /// An address: checked, never sent.
    case address(String)

    /// Reads the host part of a URL.
    /// - Returns: `nil` for what is neither a name nor an address, and so could never be verified.
    init?(_ text: String) {
        var name = text
        if name.hasPrefix("["), name.hasSuffix("]") { name = String(name.dropFirst().dropLast()) }
        if SocketAddress(literal: name, port: 0) != nil {
            self = .address(name)
            return
        }
        if name.hasSuffix(".") { name.removeLast() }
        name = name.lowercased()
        let bytes = name.utf8
        // A name that begins with a dot would be taken by OpenSSL for every name that ends so.
        guard (1...253).contains(bytes.count), bytes.first != UInt8(ascii: ".") else { return nil }
        let isHostName = bytes.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
                UInt8(ascii: "-"),
                UInt8(ascii: "_"), UInt8(ascii: "."):
                true
            default: false
            }
        }
        guard isHostName else { return nil }
        self = .host(name)
    }

    /// The name or the address.
    var text: String {
        switch self {
        case .host(let name), .address(let name): name
        }
    }
}
