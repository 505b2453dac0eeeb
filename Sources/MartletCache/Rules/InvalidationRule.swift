package import MartletWire

/// Which URLs are out of date after a request that may have changed them (RFC 9111 §4.4).
package enum InvalidationRule {
    /// The methods that change nothing (RFC 9110 §9.2.1); all others, known or not, may.
    private static let safe: Set<String> = [
        "GET", "HEAD", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "REPORT", "SEARCH", "QUERY", "PRI",
    ]

    /// Whether a method may change something.
    package static func isUnsafe(_ method: String) -> Bool { !safe.contains(method) }

    /// The URLs that are out of date, in their normal form and each once: that of the request first, then those that
    /// `Location` and `Content-Location` name at the same origin. None after a safe method, or an error.
    ///
    /// - Parameters:
    ///   - method: the method that was answered.
    ///   - url: the URL of the request.
    ///   - response: the head of the answer.
    ///   - resolve: makes a reference absolute, with the request's URL as its base; nil where it is malformed.
    package static func targets(
        method: String, url: String, response: ResponseHead, resolve: (String) -> String?
    ) -> [String] {
        guard isUnsafe(method), (200..<400).contains(response.status), let target = KeyURL(url) else {
            return []
        }
        var targets = [target.origin + target.target]
        for name in ["Location", "Content-Location"] {
            guard let reference = response.fields.firstValue(of: name), let resolved = resolve(reference),
                let other = KeyURL(resolved), other.origin == target.origin
            else { continue }
            let text = other.origin + other.target
            if !targets.contains(text) { targets.append(text) }
        }
        return targets
    }
}
