/// A name and a password as Basic sends them (RFC 7617).
///
/// They are UTF-8 whatever the challenge says: that is what `charset="UTF-8"` asks for, the one value it can have, and
/// what other clients do where it is missing.
enum BasicAuthorization {
    /// The value of the field.
    ///
    /// - Throws: For a colon in the name, and for control characters (RFC 7617 §2).
    static func value(user: String, password: String) throws(CredentialsError) -> AuthorizationValue {
        guard !user.utf8.contains(UInt8(ascii: ":")) else { throw .colonInUser }
        guard !hasControl(user), !hasControl(password) else { throw .controlCharacter }
        return AuthorizationValue(bytes: "Basic ".utf8 + Base64.encoded("\(user):\(password)".utf8))
    }

    /// Whether a text has a control character of ASCII's.
    static func hasControl(_ text: String) -> Bool {
        text.utf8.contains { $0 < 0x20 || $0 == 0x7F }
    }
}
