/// A token as Bearer sends it (RFC 6750 §2.1).
enum BearerAuthorization {
    /// The value of the field.
    ///
    /// - Throws: For a token that could end the field, or is none.
    static func value(token: String) throws(CredentialsError) -> AuthorizationValue {
        let body = token.utf8.reversed().drop { $0 == UInt8(ascii: "=") }
        guard !body.isEmpty, body.allSatisfy(isTokenByte) else { throw .invalidToken }
        return AuthorizationValue(bytes: "Bearer ".utf8 + Array(token.utf8))
    }

    private static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "A")...UInt8(ascii: "Z"):
            true
        default: "-._~+/".utf8.contains(byte)
        }
    }
}
