import FoundationEssentials

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
                nameBytes: name, valueBytes: value, domain: domain, isHostOnly: isHostOnly, path: path,
                expires: expires, isSecure: isSecure, isHTTPOnly: isHTTPOnly, sameSite: sameSite,
                created: created,
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
        // Bytes that are not UTF-8 are written as numbers, since a string would change them.
        if let text = String(validating: nameBytes, as: UTF8.self) {
            try container.encode(text, forKey: .name)
        } else {
            try container.encode(nameBytes, forKey: .nameBytes)
        }
        if let text = String(validating: valueBytes, as: UTF8.self) {
            try container.encode(text, forKey: .value)
        } else {
            try container.encode(valueBytes, forKey: .valueBytes)
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
