import Martlet

/// The credentials that a request of a batch brings along.
enum BatchAuthentication {
    /// Reads `{"type":"basic","user":"…","password":"…"}`; null is none.
    static func identity(_ member: BatchMember) throws(BatchFault) -> CallerIdentity? {
        if member.isNull { return nil }
        var type: String?
        var user: String?
        var password = ""
        for part in try member.object() {
            switch part.name {
            case "auth.type": type = try part.string()
            case "auth.user": user = try part.string()
            case "auth.password": password = try part.string()
            default: throw BatchFault(.unsupported, "the key “\(part.name)” is unknown")
            }
        }
        guard let type, let user else { throw BatchFault(.other, "“auth” needs a type and a user") }
        guard let scheme = Credentials.PasswordScheme(rawValue: type) else {
            throw BatchFault(.unsupported, "“auth.type”: “\(type)” is not one of basic, digest and any")
        }
        return CallerIdentity(.password(user: user, password: password, scheme: scheme))
    }
}
