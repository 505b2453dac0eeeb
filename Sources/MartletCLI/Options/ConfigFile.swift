/// A file of options, as curl's `-K` reads it: one a line, `name value`, `name = value` or `name: value`.
enum ConfigFile {
    /// The words that a command line of the same meaning has.
    static func words(of text: String, named name: String) throws(UsageError) -> [String] {
        var words: [String] = []
        for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
            .enumerated()
        {
            let line = line.drop(while: isBlank)
            guard let first = line.first, first != "#" else { continue }
            let option = line.prefix { !isBlank($0) && $0 != "=" && $0 != ":" }
            if option.isEmpty { throw UsageError("\(name), line \(index + 1): no option") }
            let isShort = option.hasPrefix("-") && !option.hasPrefix("--")
            words.append(option.hasPrefix("-") ? String(option) : "--\(option)")
            if isShort, option.count > 2 { continue }
            var rest = line.dropFirst(option.count).drop(while: isBlank)
            if let separator = rest.first, separator == "=" || separator == ":" {
                rest = rest.dropFirst().drop(while: isBlank)
            }
            if rest.first == "\"" {
                words.append(try quoted(rest.dropFirst(), "\(name), line \(index + 1)"))
            } else if !rest.isEmpty, rest.first != "#" {
                words.append(String(rest.reversed().drop(while: isBlank).reversed()))
            }
        }
        return words
    }

    private static func isBlank(_ character: Character) -> Bool {
        character == " " || character == "\t"
    }

    private static func quoted(_ text: Substring, _ place: String) throws(UsageError) -> String {
        let escapes: [Character: Character] = ["n": "\n", "t": "\t", "r": "\r", "v": "\u{B}"]
        var value = ""
        var isEscaped = false
        for character in text {
            if isEscaped {
                value.append(escapes[character] ?? character)
                isEscaped = false
            } else if character == "\\" {
                isEscaped = true
            } else if character == "\"" {
                return value
            } else {
                value.append(character)
            }
        }
        throw UsageError("\(place): a quote is not closed")
    }
}
