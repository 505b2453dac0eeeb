import Martlet

/// A URL as it is given on a command line.
enum GivenURL {
    /// The text with `http://` before it where nothing is.
    static func completed(_ given: String, takesBracesLiterally: Bool) throws(UsageError) -> String {
        let text = takesBracesLiterally ? given : try withoutPatterns(given)
        return hasScheme(text) ? text : "http://\(text)"
    }

    /// Whether a scheme is written. `http:/x` and `https:` have one, and are none of a host of that name, unless a port
    /// follows; what stands behind a path or a query is none.
    private static func hasScheme(_ text: String) -> Bool {
        let name = text.utf8.prefix { !":/?#@[".utf8.contains($0) }
        if !name.isEmpty, text.utf8[name.endIndex...].starts(with: "://".utf8) { return true }
        guard ["http", "https"].contains(Substring(name).lowercased()) else { return false }
        let behind = text.utf8[name.endIndex...]
        return behind.first == UInt8(ascii: ":")
            && !behind.dropFirst().prefix(1).contains { (48...57).contains($0) }
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

    /// The URL where it is no pattern: curl would make several of one with `{a,b}` or `[1-9]` in it. An empty `[]` is none,
    /// nor is a bracket behind a backslash, which is taken away.
    private static func withoutPatterns(_ text: String) throws(UsageError) -> String {
        guard text.utf8.contains(where: { [0x5B, 0x5D, 0x7B, 0x7D].contains($0) }) else { return text }
        let host = text.split(separator: "://", maxSplits: 1).last ?? ""
        let isAddress = host.hasPrefix("[") || host.contains("@[")
        var rest = (isAddress ? host.drop { $0 != "]" }.dropFirst() : host[...]).unicodeScalars
        var literal = String.UnicodeScalarView(text[..<rest.startIndex].unicodeScalars)
        while let scalar = rest.popFirst() {
            if scalar == "\\", let next = rest.first, "{}[]".unicodeScalars.contains(next) {
                literal.append(next)
                rest.removeFirst()
            } else if scalar == "[", rest.first == "]" {
                literal.append(contentsOf: "[]".unicodeScalars)
                rest.removeFirst()
            } else if "{}[]".unicodeScalars.contains(scalar) {
                throw UsageError(
                    "URL patterns with { } [ ] are not supported; -g takes them as they are",
                    status: .malformedURL)
            } else {
                literal.append(scalar)
            }
        }
        return String(literal)
    }
}
