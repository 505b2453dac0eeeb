import MartletWire

/// What a stored response is found by: the URL, and whose it is.
///
/// Responses to GET alone are stored, so the method is no part of it. Variants of one URL (RFC 9111 §4.1) share a key.
package struct CacheKey: Hashable, Sendable {
    /// The URL as it was asked for, without fragment and user info, in its normal form.
    package var url: String
    /// Whose response it is: empty for everybody's, else a digest of the credential or a name that the caller chose. Never
    /// a secret itself, since it is written to disk.
    package var partition: String

    /// The key of a URL.
    package init(url: String, partition: String = "") {
        self.url = url
        self.partition = partition
    }
}

extension CacheKey {
    /// The key of an absolute URL in any spelling: without fragment and user info, scheme and host in lower case, without
    /// the port that goes without saying, and with a path.
    ///
    /// Paths and queries are compared as they are: `%7E` and `~` make two keys, which costs a request and is never
    /// wrong.
    ///
    /// - Parameters:
    ///   - url: an absolute URL of http or https.
    ///   - partition: whose response it is; empty for everybody's.
    package init?(of url: String, partition: String = "") {
        guard let parts = KeyURL(url) else { return nil }
        self.init(url: parts.origin + parts.target, partition: partition)
    }

    /// Scheme, host and port of the URL, in their normal form; nil where it is none of http or https.
    package var origin: String? { KeyURL(url)?.origin }
}

/// An absolute URL in the two parts that keys are made of and origins compared by (RFC 9110 §4.2.3).
struct KeyURL: Equatable {
    /// Scheme, host and port: `https://example.com`, with the port only where it is not the scheme's own.
    let origin: String
    /// Path and query; the path is never empty.
    let target: String

    /// Takes a URL apart; nil unless it is one of http or https with a host.
    init?(_ url: String) {
        let bytes = Array(url.utf8)
        let scheme: String
        let defaultPort: String
        if KeyURL.starts(bytes, with: "https://") {
            (scheme, defaultPort) = ("https://", "443")
        } else if KeyURL.starts(bytes, with: "http://") {
            (scheme, defaultPort) = ("http://", "80")
        } else {
            return nil
        }
        let rest = bytes.dropFirst(scheme.utf8.count).prefix { $0 != UInt8(ascii: "#") }
        var authority = rest.prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
        let tail = rest[authority.endIndex...]
        if let at = authority.lastIndex(of: UInt8(ascii: "@")) { authority = authority[(at + 1)...] }
        var host = authority
        var port = authority[authority.endIndex...]
        // A colon inside the brackets of an IPv6 address begins no port.
        if let colon = authority.lastIndex(of: UInt8(ascii: ":")),
            !authority[colon...].contains(UInt8(ascii: "]"))
        {
            host = authority[..<colon]
            port = authority[(colon + 1)...]
        }
        guard !host.isEmpty, port.allSatisfy(ByteClass.isDigit) else { return nil }
        port = port.drop { $0 == UInt8(ascii: "0") }
        let portText = String(decoding: port, as: UTF8.self)
        origin =
            scheme + String(decoding: host.map(ByteClass.lowercased), as: UTF8.self)
            + (portText.isEmpty || portText == defaultPort ? "" : ":" + portText)
        target = (tail.first == UInt8(ascii: "/") ? "" : "/") + String(decoding: tail, as: UTF8.self)
    }

    private static func starts(_ bytes: [UInt8], with prefix: String) -> Bool {
        ByteClass.equalsIgnoringCase(bytes.prefix(prefix.utf8.count), prefix.utf8.span)
    }
}
