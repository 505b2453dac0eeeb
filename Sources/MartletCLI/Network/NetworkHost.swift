import Martlet

/// A host that is asked about.
struct NetworkHost: Sendable {
    /// As it was written.
    let name: String
    /// Where a connection would be made to.
    let url: HTTPURL

    /// A host as it is written: a name or an address, with a port or without; an address of IPv6 with a port has brackets.
    init(_ text: String) throws(HTTPURL.ParseError) {
        name = text
        let isBareLiteral = text.utf8.count { $0 == UInt8(ascii: ":") } > 1 && !text.hasPrefix("[")
        // The scheme is for the port that is meant where none is written.
        url = try HTTPURL("https://\(isBareLiteral ? "[\(text)]" : text)/")
    }
}
