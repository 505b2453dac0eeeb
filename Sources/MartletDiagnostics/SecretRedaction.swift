import MartletCore
public import HTTPTypes

/// The secrets that logs and command lines show as `***`. In bodies, these are the form fields in ``queryItems``.
public struct SecretRedaction: Hashable, Sendable {
    /// The fields with secret values. Authentication schemes and the names of cookies are still shown.
    public var fields: Set<HTTPField.Name>
    /// The lower-case names of query and form items with secret values; for example ``HTTPURL/secretQueryNames``.
    public var queryItems: Set<String>
    /// Whether user names and passwords in URLs are secret.
    public var masksUserInfo: Bool

    /// Creates a mask.
    public init(fields: Set<HTTPField.Name>, queryItems: Set<String> = [], masksUserInfo: Bool = true) {
        self.fields = fields
        self.queryItems = Set(queryItems.map { $0.lowercased() })
        self.masksUserInfo = masksUserInfo
    }

    /// The default mask: credentials and cookies, and user names and passwords in URLs.
    public static let standard = SecretRedaction(fields: [.authorization, .proxyAuthorization, .cookie, .setCookie])
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
        guard fields.contains(name) else { return Self.fieldsWithURL.contains(name) ? reference(value) : value }
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
            explicitPort: url.explicitPort, path: url.path, query: url.query.map(query), fragment: url.fragment
        ).absoluteString
    }

    /// Returns a masked query or form: items with secret values keep their names.
    package func query(_ text: String) -> String {
        guard !queryItems.isEmpty else { return text }
        return HTTPURL.masked(text, where: hides)
    }

    /// Whether the value of an item of a query or form is secret.
    func hides(_ name: String) -> Bool { queryItems.contains(name.lowercased()) }

    /// Returns the value of a field that is a URL, masked.
    private func reference(_ value: String) -> String {
        guard self != .none else { return value }
        if let url = try? HTTPURL(value, pathAsIs: true) {
            return url.userInfo != nil || url.query != nil ? text(of: url) : value
        }
        // A relative URL has no user info, but may have a query.
        guard let mark = value.utf8.firstIndex(of: UInt8(ascii: "?")) else { return value }
        return String(value[...mark]) + query(String(value[value.utf8.index(after: mark)...]))
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
