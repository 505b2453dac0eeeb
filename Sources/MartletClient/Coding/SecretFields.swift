extension HTTPFields {
    /// The fields without those that hold credentials: secrets are never encoded.
    package var withoutSecrets: HTTPFields {
        var fields = self
        for name in HTTPFields.secretNames { fields[name] = nil }
        return fields
    }

    private static let secretNames: [HTTPField.Name] = [
        .authorization, .proxyAuthorization, .cookie, .setCookie,
    ]
}
