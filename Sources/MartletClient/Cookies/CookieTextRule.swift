import MartletWire

/// Which bytes and how many a cookie may have (RFC 6265bis §5.6, §5.7).
enum CookieTextRule {
    /// The most bytes of name and value together.
    static let byteLimit = 4096
    /// The most bytes of an attribute's value; a longer one is as if it were not there.
    static let attributeLimit = 1024

    /// Whether bytes can be a name, a value or a path: no control characters but tabs, no `;`, no white space
    /// at an end.
    ///
    /// A path may have `;`: no `Set-Cookie` can name such a one, but an address can, whose path then counts.
    static func isAllowed(_ bytes: [UInt8], isPath: Bool = false) -> Bool {
        guard let first = bytes.first, let last = bytes.last else { return true }
        return !ByteClass.isBlank(first) && !ByteClass.isBlank(last)
            && bytes.allSatisfy { ByteClass.isFieldValue($0) && (isPath || $0 != UInt8(ascii: ";")) }
    }
}
