import MartletClient

/// Which fields are not written to disk.
struct SecretFields: Sendable {
    private static let always: Set<String> = [
        "authorization", "cookie", "proxy-authorization", "set-cookie", "authentication-info",
        "proxy-authentication-info",
    ]
    private var names: Set<String>

    init(_ declared: Set<HTTPField.Name>) {
        names = SecretFields.always.union(declared.map(\.canonicalName))
    }

    /// These, and more by their names.
    func adding(_ more: [String]) -> SecretFields {
        var all = self
        all.names.formUnion(more.compactMap { HTTPField.Name($0)?.canonicalName })
        return all
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
