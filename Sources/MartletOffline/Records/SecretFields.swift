import MartletClient

/// Which fields are not written to disk.
struct SecretFields: Sendable {
    private static let always: Set<String> = [
        "authorization", "cookie", "proxy-authorization", "set-cookie", "authentication-info",
        "proxy-authentication-info",
    ]
    private let names: Set<String>

    init(_ declared: Set<HTTPField.Name>) {
        names = SecretFields.always.union(declared.map(\.canonicalName))
    }

    /// Fields without the secret ones, and those.
    func stripped(from fields: HTTPFields) -> (kept: HTTPFields, secret: HTTPFields) {
        var kept = HTTPFields()
        var secret = HTTPFields()
        for field in fields {
            if names.contains(field.name.canonicalName) { secret.append(field) } else { kept.append(field) }
        }
        return (kept, secret)
    }
}
