import MartletCore
public import FoundationEssentials
import MartletWire

/// A cookie as a ``CookieJar`` keeps it (RFC 6265bis §5.7).
///
/// Its value is a secret: it is in ``value`` and nowhere else, not in the description and not in what `dump`
/// prints.
public struct Cookie: Sendable, Hashable {
    /// The bytes of the name; empty for a cookie that was set without one.
    package let nameBytes: [UInt8]
    /// The bytes of the value.
    package let valueBytes: [UInt8]

    /// The host or domain it belongs to: lower case, A-labels, without a leading dot; an IPv6 address without
    /// brackets.
    public let domain: String

    /// Whether it goes to exactly ``domain``; else also to all names below it.
    public internal(set) var isHostOnly: Bool

    /// The path it goes to, with all paths below; begins with `/`.
    public let path: String

    /// When it ends; `nil` for a cookie of the session. No later than 400 days after it was stored.
    public internal(set) var expires: Date?

    /// Whether it goes out over TLS only.
    public let isSecure: Bool

    /// Whether scripts of a browser may not see it. Kept for those that read the jar; here it changes
    /// nothing.
    public let isHTTPOnly: Bool

    /// What was said of requests that other sites cause. Kept for those that read the jar; requests of this
    /// library are caused by no site.
    public let sameSite: SameSite

    /// When it was first set. Setting it again keeps this, and so its place among others of its path's
    /// length.
    public package(set) var created: Date

    /// When it was last sent or set.
    public package(set) var lastUsed: Date

    /// The name, as UTF-8; empty for a cookie that was set without one.
    public var name: String { String(decoding: nameBytes, as: UTF8.self) }

    /// The value, as UTF-8. Bytes that are none are shown as U+FFFD, and sent as they came.
    public var value: String { String(decoding: valueBytes, as: UTF8.self) }

    /// Whether it ends with the session: it has no ``expires``.
    public var isSessionCookie: Bool { expires == nil }

    /// Whether it has ended.
    public func isExpired(at now: Date) -> Bool { expires.map { $0 <= now } ?? false }

    /// Whether another cookie has the same name, domain, reach and path, so that one takes the other's place.
    package func isSame(as other: Cookie) -> Bool {
        // Bytes, not strings: two spellings of a letter are one string and two names.
        nameBytes == other.nameBytes && isHostOnly == other.isHostOnly && domain == other.domain
            && path.utf8.elementsEqual(other.path.utf8)
    }
}

// Here, so that the structure keeps its own initialiser, of parts that were checked.
extension Cookie {
    /// Makes a cookie of one's own, held to the rules that hold for a server's.
    ///
    /// - Parameters:
    ///   - name: the name; not empty together with the value.
    ///   - value: the value; with the name at most 4,096 bytes.
    ///   - domain: a host, in any spelling that an address may have; a leading dot is dropped.
    ///   - isHostOnly: whether it goes to that host alone. An IP address has nothing below it, whatever this
    ///     says.
    ///   - path: where it goes; begins with `/`, at most 1,024 bytes.
    ///   - expires: when it ends; `nil` for never, within the session.
    ///   - isSecure: whether it needs TLS.
    ///   - isHTTPOnly: whether scripts may not see it.
    ///   - sameSite: what is said of requests that other sites cause.
    ///   - created: when it was made, by which it is sorted among others.
    /// - Throws: ``CookieError`` when a part is not allowed, or a name that begins with `__Host-` or
    ///   `__Secure-` promises what the rest does not keep.
    public init(
        name: String, value: String, domain: String, isHostOnly: Bool = true, path: String = "/",
        expires: Date? = nil, isSecure: Bool = false, isHTTPOnly: Bool = false,
        sameSite: SameSite = .unspecified, created: Date = Date()
    ) throws(CookieError) {
        try self.init(
            checking: Array(name.utf8), Array(value.utf8), domain: domain, isHostOnly: isHostOnly, path: path,
            expires: expires, isSecure: isSecure, isHTTPOnly: isHTTPOnly, sameSite: sameSite,
            created: created, lastUsed: created)
    }

    /// Checks the parts and makes a cookie of them.
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
        let isPromiseKept = CookiePrefixRule(name: nameBytes, value: valueBytes)
            .allows(isSecure: isSecure, isHostOnly: isHostOnly, path: path)
        guard isPromiseKept else { throw .prefixNotHonored }
        self.init(
            nameBytes: nameBytes, valueBytes: valueBytes, domain: host.text, isHostOnly: isHostOnly,
            path: path, expires: expires, isSecure: isSecure, isHTTPOnly: isHTTPOnly, sameSite: sameSite,
            created: created, lastUsed: lastUsed)
    }
}

extension Cookie: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Name, domain and attributes; the value is left out.
    public var description: String {
        var parts = ["\(name)=***", "\(isHostOnly ? "" : ".")\(domain)\(path)"]
        if let expires {
            parts.append("until \(HTTPDate(secondsSinceEpoch: CookieDate.seconds(of: expires)).text)")
        }
        if isSecure { parts.append("Secure") }
        if isHTTPOnly { parts.append("HttpOnly") }
        if sameSite != .unspecified { parts.append("SameSite=\(sameSite.rawValue)") }
        return parts.joined(separator: "; ")
    }

    /// As ``description``: without the value.
    public var debugDescription: String { description }

    /// Shows ``description`` alone, so that `dump` prints no value either.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}

extension Cookie: Codable {
    private enum Key: String, CodingKey {
        case name, value, nameBytes, valueBytes, domain, isHostOnly, path, expires, isSecure, isHTTPOnly,
            sameSite
        case created, lastUsed
    }

    /// Reads a cookie, and holds it to the rules of its initialiser.
    ///
    /// - Throws: `DecodingError.dataCorrupted` with the text of the ``CookieError``.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        // Outside, since what these throw is not an error of a cookie.
        let name = try Cookie.bytes(container, text: .name, bytes: .nameBytes)
        let value = try Cookie.bytes(container, text: .value, bytes: .valueBytes)
        let domain = try container.decode(String.self, forKey: .domain)
        let isHostOnly = try container.decode(Bool.self, forKey: .isHostOnly)
        let path = try container.decode(String.self, forKey: .path)
        let expires = try container.decodeIfPresent(Date.self, forKey: .expires)
        let isSecure = try container.decode(Bool.self, forKey: .isSecure)
        let isHTTPOnly = try container.decode(Bool.self, forKey: .isHTTPOnly)
        let sameSite = try container.decode(SameSite.self, forKey: .sameSite)
        let created = try container.decode(Date.self, forKey: .created)
        let lastUsed = try container.decodeIfPresent(Date.self, forKey: .lastUsed) ?? created
        do throws(CookieError) {
            try self.init(
                checking: name, value, domain: domain, isHostOnly: isHostOnly, path: path, expires: expires,
                isSecure: isSecure, isHTTPOnly: isHTTPOnly, sameSite: sameSite, created: created,
                lastUsed: lastUsed)
        } catch {
            throw DecodingError.dataCorrupted(
                .init(codingPath: decoder.codingPath, debugDescription: error.description))
        }
    }

    private static func bytes(
        _ container: KeyedDecodingContainer<Key>, text: Key, bytes: Key
    ) throws -> [UInt8] {
        if let bytes = try container.decodeIfPresent([UInt8].self, forKey: bytes) { return bytes }
        return Array(try container.decode(String.self, forKey: text).utf8)
    }

    /// Writes the cookie with its value, so that it reads back equal. Keep it where only its owner can read.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        for (bytes, text, raw) in [(nameBytes, Key.name, Key.nameBytes), (valueBytes, .value, .valueBytes)] {
            // Bytes that are not UTF-8 are written as numbers, since a string would change them.
            if let string = String(validating: bytes, as: UTF8.self) {
                try container.encode(string, forKey: text)
            } else {
                try container.encode(bytes, forKey: raw)
            }
        }
        try container.encode(domain, forKey: .domain)
        try container.encode(isHostOnly, forKey: .isHostOnly)
        try container.encode(path, forKey: .path)
        try container.encodeIfPresent(expires, forKey: .expires)
        try container.encode(isSecure, forKey: .isSecure)
        try container.encode(isHTTPOnly, forKey: .isHTTPOnly)
        try container.encode(sameSite, forKey: .sameSite)
        try container.encode(created, forKey: .created)
        try container.encode(lastUsed, forKey: .lastUsed)
    }
}

extension Cookie {
    /// What a cookie says of requests that other sites cause (RFC 6265bis §5.6.7).
    public enum SameSite: String, Sendable, Hashable, Codable {
        /// It goes with no request that another site causes.
        case strict = "Strict"
        /// It goes with such requests only when they lead the user to its site.
        case lax = "Lax"
        /// It goes with all requests.
        case none = "None"
        /// Nothing, or nothing that is known.
        case unspecified = "Default"
    }
}
