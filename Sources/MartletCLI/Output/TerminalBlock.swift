import Glibc

/// Lines at the bottom of a terminal that are redrawn in place, below lines that stay. It does no I/O. The cursor is
/// hidden at the end of the last line. Wrapping is off while lines are written, so that a character that is wider than
/// counted here does not start a second line.
struct TerminalBlock: Sendable {
    private(set) var lineCount = 0

    /// The text that replaces the lines, for one write, with notes above them that stay.
    mutating func frame(_ lines: [String], notes: [String] = []) -> String {
        guard !lines.isEmpty else { return end(notes: notes) }
        var text = lineCount == 0 ? "\u{1B}[?25l" : ""
        text += TerminalBlock.start(of: lineCount)
        if !notes.isEmpty { text += TerminalBlock.text(of: notes, below: lineCount) }
        text += "\u{1B}[?7l"
        text += lines.map { "\($0)\u{1B}[K" }.joined(separator: "\r\n")
        // Erases the rest of a larger block.
        if lines.count < lineCount { text += "\u{1B}[J" }
        text += "\u{1B}[?7h"
        lineCount = lines.count
        return text
    }

    /// The text that removes the lines, writes notes that stay, and shows the cursor again.
    mutating func end(notes: [String] = []) -> String {
        guard lineCount > 0 else { return TerminalBlock.text(of: notes, below: 0) }
        let text = TerminalBlock.start(of: lineCount) + "\u{1B}[J"
        lineCount = 0
        return text + TerminalBlock.text(of: notes, below: 0) + "\u{1B}[?25h"
    }

    private static func start(of lineCount: Int) -> String {
        lineCount == 0 ? "" : lineCount == 1 ? "\r" : "\r\u{1B}[\(lineCount - 1)A"
    }

    /// Notes over the erased lines; long ones wrap.
    private static func text(of notes: [String], below lineCount: Int) -> String {
        (lineCount > 0 ? "\u{1B}[J" : "") + notes.map { "\($0)\r\n" }.joined()
    }
}

struct TerminalSize: Hashable, Sendable {
    var columns: Int
    var rows: Int

    /// The current size: that of the terminal, else of `COLUMNS` and `LINES`, else 80 and 24.
    static var current: TerminalSize {
        var size = winsize()
        let isKnown = unsafe ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0
        return TerminalSize(
            columns: isKnown && size.ws_col > 0 ? Int(size.ws_col) : variable("COLUMNS", or: 80),
            rows: isKnown && size.ws_row > 0 ? Int(size.ws_row) : variable("LINES", or: 24))
    }

    private static func variable(_ name: String, or fallback: Int) -> Int {
        Environment[name].flatMap { Int($0) }.flatMap { $0 > 0 ? min($0, 10_000) : nil } ?? fallback
    }
}

/// Texts of unknown origin, made safe for a terminal.
enum TerminalText {
    /// Escapes characters that could control a terminal, end a line or reverse its order as `\u{1b}`, and doubles
    /// backslashes.
    static func escaped(_ text: String) -> String { escaped(text) { $0 == "\\" ? "\\\\" : nil } }

    /// Like ``escaped(_:)``, but backslashes and tabs are unchanged, for readable output.
    static func shown(_ line: String) -> String { escaped(line) { $0 == "\t" ? "\t" : nil } }

    private static func escaped(_ text: String, _ special: (Unicode.Scalar) -> String?) -> String {
        text.unicodeScalars.map { scalar in
            if let text = special(scalar) { return text }
            return isHarmless(scalar) ? String(scalar) : "\\u{\(String(scalar.value, radix: 16))}"
        }.joined()
    }

    /// Whether a character is safe to print: known to Unicode, and not a control, format or line separator.
    static func isHarmless(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.isASCII { return (0x20..<0x7F).contains(scalar.value) }
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: return false
        default: return true
        }
    }
}

/// Texts measured in columns of a terminal, as `wcwidth` counts them: two for wide characters, none for combining
/// marks.
enum ColumnText {
    static func width(_ text: some StringProtocol) -> Int { text.unicodeScalars.reduce(0) { $0 + width($1) } }

    /// A text of unknown origin, escaped for a line of a terminal; in ASCII if the terminal supports only that.
    static func safe(_ text: String, usesUnicode: Bool) -> String {
        let escaped = TerminalText.escaped(text)
        return usesUnicode ? escaped : String(escaped.map { $0.isASCII ? $0 : "?" })
    }

    /// A text cut in the middle to a maximum number of columns.
    static func cut(_ text: String, to limit: Int, usesUnicode: Bool) -> String {
        guard width(text) > limit else { return text }
        let mark = usesUnicode ? "…" : limit < 8 ? "~" : "..."
        let room = limit - width(mark)
        guard room >= 2 else { return String(prefix(of: text, columns: limit)) }
        return prefix(of: text, columns: (room + 1) / 2) + mark + suffix(of: text, columns: room / 2)
    }

    /// The longest beginning that fits; no character is cut.
    static func prefix(of text: String, columns: Int) -> Substring { text.prefix(count(text, columns)) }

    private static func suffix(of text: String, columns: Int) -> Substring {
        text.suffix(count(text.reversed(), columns))
    }

    /// The number of characters, from the first on, that fit into a number of columns.
    private static func count(_ text: some Sequence<Character>, _ columns: Int) -> Int {
        var used = 0
        return text.prefix { character in
            used += width(String(character))
            return used <= columns
        }.count
    }

    /// A text of exactly a number of columns, padded with spaces or cut at its end.
    static func fitted(_ text: String, to columns: Int, isRight: Bool = false) -> String {
        let text = width(text) > columns ? String(prefix(of: text, columns: columns)) : text
        let padding = String(repeating: " ", count: max(0, columns - width(text)))
        return isRight ? padding + text : text + padding
    }

    private static func width(_ scalar: Unicode.Scalar) -> Int {
        if scalar.isASCII { return scalar.value < 0x20 || scalar.value == 0x7F ? 0 : 1 }
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format, .control: return 0
        default: break
        }
        // Hangul vowels and final consonants join the wide consonant before them.
        if (0x1160...0x11FF).contains(scalar.value) { return 0 }
        if scalar.properties.isEmojiPresentation { return 2 }
        return wideRanges.contains { $0.contains(scalar.value) } ? 2 : 1
    }

    /// The blocks that are wide or fullwidth in Unicode's East Asian Width.
    private static let wideRanges: [ClosedRange<UInt32>] = [
        0x1100...0x115F, 0x2E80...0x303E, 0x3041...0x4DBF, 0x4E00...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3,
        0xF900...0xFAFF, 0xFE10...0xFE19, 0xFE30...0xFE6F, 0xFF01...0xFF60, 0xFFE0...0xFFE6, 0x16FE0...0x18DFF,
        0x1AFF0...0x1B2FF, 0x1F200...0x1F2FF, 0x1F300...0x1F64F, 0x1F680...0x1F6FF, 0x1F900...0x1FAFF,
        0x20000...0x3FFFD,
    ]
}
