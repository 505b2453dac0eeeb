import MartletCore

/// Reads the words of a netrc.
///
/// Words are parted by blanks and line ends. One that begins with a quotation mark ends with the next, on the same line, and
/// holds anything between, with `\n`, `\r`, `\t` and a backslash before any other character for that character. A `#` where
/// a word of the syntax is expected begins a comment to the end of its line; in a value it is a character. `macdef` reaches
/// to the next empty line. Words that are not known are passed over.
struct NetrcParser {
    private let bytes: [UInt8]
    private var position = 0
    private var line = 1

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// All entries.
    mutating func entries() throws(NetrcError) -> [NetrcEntry] {
        guard bytes.count <= NetrcFile.byteLimit else { throw NetrcError(line: 1, code: .tooLarge) }
        var entries: [NetrcEntry] = []
        var current: NetrcEntry?
        while let word = try keyword() {
            let wordLine = line
            switch word {
            case "machine":
                if let current { entries.append(current) }
                current = NetrcEntry(machine: try value(), line: wordLine)
            case "default":
                if let current { entries.append(current) }
                current = NetrcEntry(machine: nil, line: wordLine)
            case "login", "user": let value = try value(); current?.login = value
            case "password", "passwd": let value = try value(); current?.password = value
            case "account": let value = try value(); current?.account = value
            case "macdef":
                _ = try value()
                skipMacro()
            default: break
            }
        }
        if let current { entries.append(current) }
        return entries
    }

    /// The next word that is no comment, in lower case; `nil` at the end.
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

    /// The word at the position, of at least one byte.
    private mutating func word() throws(NetrcError) -> String {
        var word: [UInt8] = []
        if current == UInt8(ascii: "\"") {
            word = try quoted()
        } else {
            while let byte = current, byte > 0x20 {
                guard byte != 0x7F else { throw NetrcError(line: line, code: .controlCharacter) }
                word.append(byte)
                position += 1
            }
            guard !word.isEmpty else { throw NetrcError(line: line, code: .controlCharacter) }
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
                value.append(NetrcParser.meaning(of: escaped))
            default: value.append(byte)
            }
        }
        throw NetrcError(line: line, code: .unterminatedQuote)
    }

    private static func meaning(of escaped: UInt8) -> UInt8 {
        switch escaped {
        case UInt8(ascii: "n"): 0x0A
        case UInt8(ascii: "r"): 0x0D
        case UInt8(ascii: "t"): 0x09
        default: escaped
        }
    }

    /// Moves behind the next empty line.
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
