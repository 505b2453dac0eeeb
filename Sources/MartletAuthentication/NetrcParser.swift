import MartletCore

/// A parser of netrc files.
///
/// Blanks and line ends separate words. A word in quotation marks may contain any characters except a line break. In
/// such a word, `\n`, `\r` and `\t` are escapes, and a backslash before any other character means that character. A `#`
/// at the position of a keyword starts a comment to the end of its line; in a value it is a normal character. `macdef`
/// extends to the next empty line. Unknown words are ignored.
struct NetrcParser {
    private static let escapes: [UInt8: UInt8] = [
        UInt8(ascii: "n"): 0x0A, UInt8(ascii: "r"): 0x0D, UInt8(ascii: "t"): 0x09,
    ]

    private let bytes: [UInt8]
    private var position = 0
    private var line = 1

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    mutating func entries() throws(NetrcError) -> [NetrcEntry] {
        guard bytes.count <= NetrcFile.byteLimit else { throw NetrcError(line: 1, code: .tooLarge) }
        var entries: [NetrcEntry] = []
        func set(_ property: WritableKeyPath<NetrcEntry, String?>) throws(NetrcError) {
            let value = try value()
            if let last = entries.indices.last { entries[last][keyPath: property] = value }
        }
        while let word = try keyword() {
            let wordLine = line
            switch word {
            case "machine": entries.append(NetrcEntry(machine: try value(), line: wordLine))
            case "default": entries.append(NetrcEntry(machine: nil, line: wordLine))
            case "login", "user": try set(\.login)
            case "password", "passwd": try set(\.password)
            case "account": try set(\.account)
            case "macdef":
                _ = try value()
                skipMacro()
            default: break
            }
        }
        return entries
    }

    /// Returns the next keyword, in lower case, after comments; `nil` at the end.
    private mutating func keyword() throws(NetrcError) -> String? {
        while true {
            skipBlanks()
            guard let byte = current else { return nil }
            guard byte == UInt8(ascii: "#") else { return try word().lowercased() }
            skipLine()
        }
    }

    private mutating func value() throws(NetrcError) -> String {
        let wordLine = line
        skipBlanks()
        guard current != nil else { throw NetrcError(line: wordLine, code: .missingValue) }
        return try word()
    }

    private mutating func word() throws(NetrcError) -> String {
        let word: [UInt8]
        if current == UInt8(ascii: "\"") {
            word = try quoted()
        } else {
            let start = position
            while let byte = current, byte > 0x20, byte != 0x7F { position += 1 }
            guard position > start, current != 0x7F else { throw NetrcError(line: line, code: .controlCharacter) }
            word = Array(bytes[start..<position])
        }
        guard let text = String(validating: word, as: UTF8.self) else {
            throw NetrcError(line: line, code: .invalidText)
        }
        return text
    }

    private mutating func quoted() throws(NetrcError) -> [UInt8] {
        position += 1
        var value: [UInt8] = []
        while let byte = current, byte != 0x0A {
            position += 1
            switch byte {
            case UInt8(ascii: "\""): return value
            case UInt8(ascii: "\\"):
                guard let escaped = current, escaped != 0x0A else { break }
                position += 1
                value.append(NetrcParser.escapes[escaped] ?? escaped)
            default: value.append(byte)
            }
        }
        throw NetrcError(line: line, code: .unterminatedQuote)
    }

    /// Skips a macro, up to the end of the next empty line.
    private mutating func skipMacro() {
        skipLine()
        while current != nil {
            let start = position
            skipLine()
            if bytes[start..<position].allSatisfy({ $0 <= 0x20 }) { return }
        }
    }

    private mutating func skipLine() {
        while let byte = current {
            position += 1
            if byte == 0x0A {
                line += 1
                return
            }
        }
    }

    private mutating func skipBlanks() {
        while let byte = current, byte == 0x20 || (0x09...0x0D).contains(byte) {
            position += 1
            if byte == 0x0A { line += 1 }
        }
    }

    private var current: UInt8? { position < bytes.endIndex ? bytes[position] : nil }
}
