import Martlet

/// A URL as it is given on a command line.
enum GivenURL {
    /// The text with `http://` before it where nothing is.
    static func completed(_ text: String, takesBracesLiterally: Bool) throws(UsageError) -> String {
        if !takesBracesLiterally { try refusePatterns(in: text) }
        return hasScheme(text) ? text : "http://\(text)"
    }

    /// Whether a scheme is written. `http:/x` has one, and is none of a host named `http`.
    private static func hasScheme(_ text: String) -> Bool {
        if text.holds("://") { return true }
        let start = text.prefix(7).lowercased()
        return start.begins(with: "http:/") || start.begins(with: "https:/")
    }

    /// The URL.
    static func parsed(_ text: String, pathAsIs: Bool = false) throws(UsageError) -> HTTPURL {
        do throws(HTTPURL.ParseError) {
            return try HTTPURL(text, pathAsIs: pathAsIs)
        } catch {
            let isScheme = error.code == .unsupportedScheme
            throw UsageError(error.description, status: isScheme ? .unsupportedScheme : .malformedURL)
        }
    }

    /// curl would make several URLs of one with `{a,b}` or `[1-9]` in it.
    private static func refusePatterns(in text: String) throws(UsageError) {
        guard text.utf8.contains(where: { [0x5B, 0x5D, 0x7B, 0x7D].contains($0) }) else { return }
        let host = text.split(separator: "://", maxSplits: 1).last ?? ""
        let isAddress = host.hasPrefix("[") || host.contains("@[")
        let rest = isAddress ? host.drop { $0 != "]" }.dropFirst() : host[...]
        guard !rest.contains(where: { "{}[]".contains($0) }) else {
            throw UsageError(
                "URL patterns with { } [ ] are not supported; -g takes them as they are",
                status: .malformedURL)
        }
    }
}
