import MartletWire

/// The key of a stored response: its URL and its partition.
///
/// Only responses to GET are stored, so the key has no method. Variants of a URL (RFC 9111 §4.1) share a key.
package struct CacheKey: Hashable, Sendable {
    /// The URL of the request, without fragment and user info, in its normal form.
    package var url: String
    /// The part of the cache: empty for the shared part, a digest of the credentials, or a name from the program. It is
    /// stored on disk, so it must not be a secret.
    package var partition: String

    package init(url: String, partition: String = "") { (self.url, self.partition) = (url, partition) }

    /// Creates the key of an http or https URL, in normal form (``KeyURL``); `nil` for any other text.
    ///
    /// Paths and queries are not normalized: `%7E` and `~` produce two keys, which costs at most one request.
    package init?(of url: String, partition: String = "") {
        guard let parts = KeyURL(url) else { return nil }
        self.init(url: parts.text, partition: partition)
    }
}

/// An absolute URL in normal form, and its origin (RFC 9110 §4.2.3).
struct KeyURL {
    /// Scheme, host and port: `https://example.com`, with the port only if it is not the scheme's default.
    let origin: String
    /// The whole URL without its fragment: origin, path and query; the path is never empty.
    let text: String

    /// Parses a URL; `nil` unless it is an http or https URL with a host.
    init?(_ url: String) {
        let bytes = Array(url.utf8)
        let known = [("https://", "443"), ("http://", "80")].first { scheme, _ in
            ByteClass.equalsIgnoringCase(bytes.prefix(scheme.utf8.count), scheme.utf8.span)
        }
        guard let (scheme, defaultPort) = known else { return nil }
        let rest = bytes.dropFirst(scheme.utf8.count).prefix { $0 != UInt8(ascii: "#") }
        var authority = rest.prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
        let target = rest[authority.endIndex...]
        if let at = authority.lastIndex(of: UInt8(ascii: "@")) { authority = authority[(at + 1)...] }
        var host = authority
        var port = authority[authority.endIndex...]
        // A colon within the brackets of an IPv6 address is not followed by a port.
        if let colon = authority.lastIndex(of: UInt8(ascii: ":")), !authority[colon...].contains(UInt8(ascii: "]")) {
            host = authority[..<colon]
            port = authority[(colon + 1)...]
        }
        guard !host.isEmpty, port.allSatisfy(ByteClass.isDigit) else { return nil }
        let digits = port.drop { $0 == UInt8(ascii: "0") }
        let portText = digits.isEmpty && !port.isEmpty ? "0" : String(decoding: digits, as: UTF8.self)
        let suffix = portText.isEmpty || portText == defaultPort ? "" : ":" + portText
        origin = scheme + host.lowercasedText + suffix
        let slash = target.first == UInt8(ascii: "/") ? "" : "/"
        text = origin + slash + String(decoding: target, as: UTF8.self)
    }
}
