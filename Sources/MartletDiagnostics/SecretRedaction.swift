import MartletCore
public import HTTPTypes

/// The secrets that logs and command lines show as `***`. In bodies, these are the form fields in ``queryItems``.
public struct SecretRedaction: Hashable, Sendable {
    /// The fields with secret values. Authentication schemes and the names of cookies are still shown.
    public var fields: Set<HTTPField.Name>
    /// The lower-case names of items with secret values, in queries, fragments and forms. They also count in brackets,
    /// as in `user[password]`.
    public var queryItems: Set<String>
    /// Whether user names and passwords in URLs are secret.
    public var masksUserInfo: Bool

    /// Creates a mask.
    public init(fields: Set<HTTPField.Name>, queryItems: Set<String> = [], masksUserInfo: Bool = true) {
        self.fields = fields
        self.queryItems = Set(queryItems.map { $0.lowercased() })
        self.masksUserInfo = masksUserInfo
    }

    /// The default mask: credentials and cookies, user names and passwords in URLs, and the items that are named in
    /// ``HTTPURL/secretQueryNames``.
    public static let standard = SecretRedaction(
        fields: [.authorization, .proxyAuthorization, .cookie, .setCookie], queryItems: HTTPURL.secretQueryNames)
    /// A mask without secrets: the result shows all values.
    public static let none = SecretRedaction(fields: [], masksUserInfo: false)

    /// Returns the mask with further fields and items, such as a field for an API key.
    public func adding(fields: Set<HTTPField.Name> = [], queryItems: Set<String> = []) -> SecretRedaction {
        SecretRedaction(
            fields: self.fields.union(fields), queryItems: self.queryItems.union(queryItems),
            masksUserInfo: masksUserInfo)
    }

    /// The replacement of a secret.
    static let stars = "***"

    /// Returns the value of a field, masked.
    package func value(of name: HTTPField.Name, _ value: String) -> String {
        guard fields.contains(name) else {
            if name.canonicalName == "link" { return links(value) }
            return Self.fieldsWithURL.contains(name) ? reference(value) : value
        }
        if name == .cookie { return SecretRedaction.cookies(value) }
        if name == .setCookie { return SecretRedaction.setCookie(value) }
        guard name == .authorization || name == .proxyAuthorization, let blank = value.firstIndex(of: " ") else {
            return SecretRedaction.stars
        }
        return "\(value[..<blank]) \(SecretRedaction.stars)"
    }

    /// Returns a URL, masked.
    func text(of url: HTTPURL) -> String {
        var userInfo = url.userInfo
        if let info = userInfo, masksUserInfo {
            userInfo = HTTPURL.UserInfo(
                user: SecretRedaction.stars, password: info.password.map { _ in SecretRedaction.stars })
        }
        return HTTPURL(
            scheme: url.scheme, userInfo: userInfo, host: url.host, hostKind: url.hostKind,
            explicitPort: url.explicitPort, path: url.path, query: url.query.map(query),
            fragment: url.fragment.map(query)
        ).absoluteString
    }

    /// Returns a masked query or form: items with secret values keep their names.
    package func query(_ text: String) -> String {
        guard !queryItems.isEmpty else { return text }
        return HTTPURL.masked(text, where: hides)
    }

    /// Whether the value of an item of a query or form is secret.
    func hides(_ name: String) -> Bool { HTTPURL.isSecret(name.lowercased(), among: queryItems) }

    /// Returns the value of a field that is a URL or a reference (RFC 3986 §4.1), masked.
    func reference(_ value: String) -> String {
        guard self != .none else { return value }
        if let url = try? HTTPURL(value, pathAsIs: true) {
            let shown = text(of: url)
            return shown == url.absoluteString ? value : shown
        }
        let bytes = value.utf8
        let end = bytes.firstIndex { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") } ?? bytes.endIndex
        var start = String(value[..<end])
        // A reference that begins with `//` may have user info, and so may URLs of other schemes and invalid ones.
        if masksUserInfo, let slashes = bytes[..<end].firstRange(of: "//".utf8),
            let at = bytes[slashes.upperBound..<end].lastIndex(of: UInt8(ascii: "@"))
        {
            start = "\(value[..<slashes.upperBound])\(SecretRedaction.stars)\(value[at..<end])"
        }
        // The query, if there is one, and the fragment.
        let parts: [Substring] = value[end...].split(separator: "#", omittingEmptySubsequences: false)
        let shown = parts.map { part in
            part.hasPrefix("?") ? "?\(query(String(part.dropFirst())))" : query(String(part))
        }
        return start + shown.joined(separator: "#")
    }

    /// Returns the value of a `Link` field with its targets masked.
    private func links(_ value: String) -> String {
        let parts: [Substring] = value.split(separator: "<", omittingEmptySubsequences: false)
        return parts.map { part in
            part.firstIndex(of: ">").map { "\(reference(String(part[..<$0])))\(part[$0...])" } ?? String(part)
        }.joined(separator: "<")
    }

    private static let fieldsWithURL: Set<HTTPField.Name> = [.location, .contentLocation, .referer]

    private static func cookies(_ value: String) -> String {
        let pairs: [Substring] = value.split(separator: ";", omittingEmptySubsequences: false)
        return pairs.map { pair in pair.firstIndex(of: "=").map { "\(pair[..<$0])=\(stars)" } ?? stars }.joined(
            separator: ";")
    }

    private static func setCookie(_ value: String) -> String {
        let end = value.firstIndex(of: ";") ?? value.endIndex
        return cookies(String(value[..<end])) + String(value[end...])
    }
}
