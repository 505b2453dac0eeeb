public import FoundationEssentials
import MartletWire

/// A cookie of a ``CookieJar`` (RFC 6265bis §5.7).
///
/// The value is a secret: it is in ``value`` and the encoded form, but not in the description or the output of `dump`.
public struct Cookie: Sendable, Hashable {
    /// The restriction on sending a cookie with requests from other sites (RFC 6265bis §5.6.7).
    public enum SameSite: String, Sendable, Hashable, Codable {
        /// The cookie is not sent with requests that another site causes.
        case strict = "Strict"
        /// Of such requests, the cookie is sent only with those that take the user to its site.
        case lax = "Lax"
        /// The cookie is sent with all requests.
        case none = "None"
        /// Not specified, or an unknown value.
        case unspecified = "Default"
    }

    /// The bytes of the name; empty for a cookie without one.
    package let nameBytes: [UInt8]
    /// The bytes of the value.
    package let valueBytes: [UInt8]
    /// The host or domain: lower case, A-labels, without a leading dot; an IPv6 address without brackets.
    public let domain: String
    /// Whether the cookie is sent to ``domain`` only; otherwise also to all names below it.
    public internal(set) var isHostOnly: Bool
    /// The path, which starts with `/`. The cookie is sent to this path and to all paths below it.
    public let path: String
    /// The time of expiry, which a jar limits to ``CookieLimits/days``; `nil` for a session cookie.
    public internal(set) var expires: Date?
    /// Whether the cookie is sent over secure connections only.
    public let isSecure: Bool
    /// Whether scripts in a browser must not read the cookie. No effect here: it is stored for readers of the jar.
    public let isHTTPOnly: Bool
    /// The restriction on requests that other sites cause. No effect here: it is stored for readers of the jar.
    public let sameSite: SameSite
    /// The time when the cookie was first set. Of cookies with paths of equal length, older ones are sent first.
    public package(set) var created: Date
    /// The time when the cookie was last sent or set.
    public package(set) var lastUsed: Date

    /// The name, as UTF-8; empty for a cookie without one.
    public var name: String { String(decoding: nameBytes, as: UTF8.self) }

    /// The value, as UTF-8. Invalid bytes are replaced by U+FFFD here, and sent unchanged.
    public var value: String { String(decoding: valueBytes, as: UTF8.self) }

    /// Whether the cookie ends with the session, because it has no ``expires``.
    public var isSessionCookie: Bool { expires == nil }

    /// Whether the cookie has expired at a given time.
    public func isExpired(at now: Date) -> Bool { expires.map { $0 <= now } ?? false }

    /// Whether another cookie has the same name, domain, ``isHostOnly`` and path, so that one replaces the other.
    package func isSame(as other: Cookie) -> Bool {
        // Compared as bytes: two encodings of a letter are equal strings but different names.
        nameBytes == other.nameBytes && isHostOnly == other.isHostOnly && domain == other.domain
            && path.utf8.elementsEqual(other.path.utf8)
    }
}

// In an extension, so that the structure keeps its memberwise initializer for checked parts.
extension Cookie {
    /// Creates a cookie, under the same rules as for the cookies of servers.
    /// - Parameters:
    ///   - name: The name; not empty together with the value.
    ///   - value: The value; with the name at most 4,096 bytes.
    ///   - domain: The host, in any spelling that a URL allows; a leading dot is removed.
    ///   - isHostOnly: Whether the cookie is sent to that host only. Always true for an IP address.
    ///   - path: The path; starts with `/`, at most 1,024 bytes.
    ///   - expires: The time of expiry; `nil` for a session cookie.
    ///   - isSecure: Whether the cookie is sent over secure connections only.
    ///   - isHTTPOnly: Whether scripts in a browser must not read the cookie.
    ///   - sameSite: The restriction on requests that other sites cause.
    ///   - created: The time of creation, which determines the order of cookies with paths of equal length.
    /// - Throws: ``CookieError`` if a part is not allowed, also by a prefix `__Host-` or `__Secure-` of the name.
    public init(
        name: String, value: String, domain: String, isHostOnly: Bool = true, path: String = "/", expires: Date? = nil,
        isSecure: Bool = false, isHTTPOnly: Bool = false, sameSite: SameSite = .unspecified, created: Date = Date()
    ) throws(CookieError) {
        try self.init(
            checking: Array(name.utf8), Array(value.utf8), domain: domain, isHostOnly: isHostOnly, path: path,
            expires: expires, isSecure: isSecure, isHTTPOnly: isHTTPOnly, sameSite: sameSite, created: created,
            lastUsed: created)
    }

    /// Creates a cookie after checking its parts.
    package init(
        checking nameBytes: [UInt8], _ valueBytes: [UInt8], domain: String, isHostOnly: Bool, path: String,
        expires: Date?, isSecure: Bool, isHTTPOnly: Bool, sameSite: SameSite, created: Date, lastUsed: Date
    ) throws(CookieError) {
        guard !nameBytes.isEmpty || !valueBytes.isEmpty, !nameBytes.contains(UInt8(ascii: "=")),
            CookieTextRule.isAllowed(nameBytes)
        else { throw .invalidName }
        guard CookieTextRule.isAllowed(valueBytes) else { throw .invalidValue }
        guard nameBytes.count + valueBytes.count <= CookieTextRule.byteLimit else { throw .tooLarge }
        guard path.utf8.first == UInt8(ascii: "/"), path.utf8.count <= CookieTextRule.attributeLimit,
            CookieTextRule.isAllowed(Array(path.utf8), isPath: true)
        else { throw .invalidPath }
        guard let host = CookieHost(domain) else { throw .invalidDomain }
        let isHostOnly = isHostOnly || host.isAddress
        guard CookiePrefixRule.allows(nameBytes, valueBytes, isSecure: isSecure, isHostOnly: isHostOnly, path: path)
        else { throw .prefixNotHonored }
        self.init(
            nameBytes: nameBytes, valueBytes: valueBytes, domain: host.text, isHostOnly: isHostOnly, path: path,
            expires: expires, isSecure: isSecure, isHTTPOnly: isHTTPOnly, sameSite: sameSite, created: created,
            lastUsed: lastUsed)
    }
}

extension Cookie: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Name, domain and attributes, without the value.
    public var description: String {
        var parts = ["\(name)=***", "\(isHostOnly ? "" : ".")\(domain)\(path)"]
        if let expires { parts.append("until \(HTTPDate(secondsSinceEpoch: CookieDate.seconds(of: expires)).text)") }
        if isSecure { parts.append("Secure") }
        if isHTTPOnly { parts.append("HttpOnly") }
        if sameSite != .unspecified { parts.append("SameSite=\(sameSite.rawValue)") }
        return parts.joined(separator: "; ")
    }

    /// The same as ``description``: without the value.
    public var debugDescription: String { description }

    /// A mirror of ``description`` only, so that `dump` does not print the value.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}

extension Cookie: Codable {
    private enum Key: String, CodingKey { case name, value, nameBytes, valueBytes }

    /// The encoded properties except the name and the value.
    private struct Attributes: Codable {
        let domain: String
        let isHostOnly: Bool
        let path: String
        let expires: Date?
        let isSecure: Bool
        let isHTTPOnly: Bool
        let sameSite: SameSite
        let created: Date
        let lastUsed: Date?
    }

    /// Decodes a cookie, and checks it as its initializer does.
    /// - Throws: `DecodingError.dataCorrupted` with the text of the ``CookieError``.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        func bytes(_ text: Key, _ bytes: Key) throws -> [UInt8] {
            if let bytes = try container.decodeIfPresent([UInt8].self, forKey: bytes) { return bytes }
            return Array(try container.decode(String.self, forKey: text).utf8)
        }
        let (name, value) = (try bytes(.name, .nameBytes), try bytes(.value, .valueBytes))
        let rest = try Attributes(from: decoder)
        do throws(CookieError) {
            try self.init(
                checking: name, value, domain: rest.domain, isHostOnly: rest.isHostOnly, path: rest.path,
                expires: rest.expires, isSecure: rest.isSecure, isHTTPOnly: rest.isHTTPOnly, sameSite: rest.sameSite,
                created: rest.created, lastUsed: rest.lastUsed ?? rest.created)
        } catch {
            throw DecodingError.dataCorrupted(
                .init(codingPath: decoder.codingPath, debugDescription: error.description))
        }
    }

    /// Encodes the cookie with its value, so that decoding returns an equal cookie. Keep the result secret.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        for (bytes, text, raw) in [(nameBytes, Key.name, Key.nameBytes), (valueBytes, .value, .valueBytes)] {
            // Bytes that are not UTF-8 are encoded as numbers, because a string would change them.
            if let string = String(validating: bytes, as: UTF8.self) {
                try container.encode(string, forKey: text)
            } else {
                try container.encode(bytes, forKey: raw)
            }
        }
        let attributes = Attributes(
            domain: domain, isHostOnly: isHostOnly, path: path, expires: expires, isSecure: isSecure,
            isHTTPOnly: isHTTPOnly, sameSite: sameSite, created: created, lastUsed: lastUsed)
        try attributes.encode(to: encoder)
    }
}
