import MartletWire

/// A name and a value in a challenge, or in what a server says of itself after it (RFC 9110 §11.2).
public struct AuthenticationParameter: Hashable, Sendable {
    /// The name in lower case.
    public let name: String
    /// The value without its quotes and escapes, byte by byte: what Digest hashes.
    package let rawValue: [UInt8]

    /// A parameter.
    init(name: String, rawValue: [UInt8]) {
        self.name = name
        self.rawValue = rawValue
    }

    /// The value without its quotes and escapes: as UTF-8 where it is that, else as Latin-1.
    public var value: String { ByteText.string(rawValue[...]) }
}

extension AuthenticationParameter: CustomStringConvertible, CustomReflectable {
    /// The name alone.
    public var description: String { name }
    /// Shows the name alone: nonces and tokens are no text for logs.
    public var customMirror: Mirror { Mirror(self, children: ["name": name]) }
}
