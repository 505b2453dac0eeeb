/// The value of an `Authorization` or `Proxy-Authorization` field, as bytes: what of it came from the server goes back
/// as it came.
///
/// It is a secret: neither its description nor its mirror show it.
package struct AuthorizationValue: Hashable, Sendable {
    /// The value. For the request's head, and for nothing else.
    package let bytes: [UInt8]

    /// A value.
    init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// Whether it is of a scheme.
    func isScheme(_ name: String) -> Bool {
        bytes.prefix(name.utf8.count + 1).elementsEqual("\(name) ".utf8)
    }
}

extension AuthorizationValue: CustomStringConvertible, CustomReflectable {
    /// The scheme, and no more.
    package var description: String {
        "\(String(decoding: bytes.prefix { $0 != UInt8(ascii: " ") }, as: UTF8.self)) ***"
    }
    /// The same as ``description``.
    package var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}
