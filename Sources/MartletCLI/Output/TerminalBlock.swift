import Glibc

/// Lines at the bottom of a terminal that are drawn again in place, with others that stay above them. Pure: what is
/// written follows from what is given.
///
/// While they stand there the cursor is hidden, at the end of the last one. Wrapping is off while they are written: a
/// character that the terminal takes for wider than it is counted here makes no second line of it.
struct TerminalBlock: Sendable {
    /// How many lines stand there.
    private(set) var lineCount = 0

    /// What to write to show other lines in place of those that stand there, for one write.
    /// - Parameter notes: Lines above them, which stay.
    mutating func frame(_ lines: [String], notes: [String] = []) -> String {
        guard !lines.isEmpty else { return end(notes: notes) }
        var text = lineCount == 0 ? "\u{1B}[?25l" : ""
        text += TerminalBlock.start(of: lineCount)
        if !notes.isEmpty { text += TerminalBlock.text(of: notes, below: lineCount) }
        text += "\u{1B}[?7l"
        text += lines.map { "\($0)\u{1B}[K" }.joined(separator: "\r\n")
        // Of more lines than these nothing stays.
        if lines.count < lineCount { text += "\u{1B}[J" }
        text += "\u{1B}[?7h"
        lineCount = lines.count
        return text
    }

    /// What to write to take the lines away, with others that stay; the cursor is shown again.
    mutating func end(notes: [String] = []) -> String {
        guard lineCount > 0 else { return TerminalBlock.text(of: notes, below: 0) }
        let text = TerminalBlock.start(of: lineCount) + "\u{1B}[J"
        lineCount = 0
        return text + TerminalBlock.text(of: notes, below: 0) + "\u{1B}[?25h"
    }

    /// To the beginning of the first line.
    private static func start(of lineCount: Int) -> String {
        switch lineCount {
        case 0: ""
        case 1: "\r"
        default: "\r\u{1B}[\(lineCount - 1)A"
        }
    }

    /// Notes wrap as they please, over what stood there.
    private static func text(of notes: [String], below lineCount: Int) -> String {
        (lineCount > 0 ? "\u{1B}[J" : "") + notes.map { "\($0)\r\n" }.joined()
    }
}

/// How much room the terminal of standard error has.
struct TerminalSize: Hashable, Sendable {
    /// Columns, at least 1.
    var columns: Int
    /// Lines, at least 1.
    var rows: Int

    /// Now: those of the terminal, else what `COLUMNS` and `LINES` say, else 80 and 24.
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

/// Texts of unknown origin, fit for a terminal.
enum TerminalText {
    /// A text in which what could command a terminal, end a line or turn its order around stands as `\u{1b}`, and a
    /// backslash as two.
    static func escaped(_ text: String) -> String {
        var escaped = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            if scalar == "\\" {
                escaped.append(contentsOf: [scalar, scalar])
            } else if isHarmless(scalar) {
                escaped.append(scalar)
            } else {
                escaped.append(contentsOf: "\\u{\(String(scalar.value, radix: 16))}".unicodeScalars)
            }
        }
        return String(escaped)
    }

    /// A line in which what could command a terminal, end a line or turn its order around stands as `\u{9b}`, for people to
    /// read: backslashes and tabs stay.
    static func shown(_ line: String) -> String {
        guard !line.unicodeScalars.allSatisfy({ isHarmless($0) || $0 == "\t" }) else { return line }
        return line.unicodeScalars.map { scalar in
            isHarmless(scalar) || scalar == "\t" ? String(scalar) : "\\u{\(String(scalar.value, radix: 16))}"
        }.joined()
    }

    /// Whether a character is only shown: not a control, format or separator of lines, and known to Unicode.
    static func isHarmless(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.isASCII { return (0x20..<0x7F).contains(scalar.value) }
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned:
            return false
        default: return true
        }
    }
}

/// Texts measured in columns of a terminal, as `wcwidth` counts them: two for wide characters, none for marks that
/// combine.
enum ColumnText {
    /// How many columns a text takes.
    static func width(_ text: some StringProtocol) -> Int { text.unicodeScalars.reduce(0) { $0 + width($1) } }

    /// A text of unknown origin as it may stand in a line: what could command the terminal as its number, in ASCII where
    /// no more is spoken.
    static func safe(_ text: String, usesUnicode: Bool) -> String {
        let escaped = TerminalText.escaped(text)
        return usesUnicode ? escaped : String(escaped.map { $0.isASCII ? $0 : "?" })
    }

    /// A text cut in the middle, so that it takes at most so many columns.
    static func cut(_ text: String, to limit: Int, usesUnicode: Bool) -> String {
        guard width(text) > limit else { return text }
        let mark = usesUnicode ? "…" : limit < 8 ? "~" : "..."
        let room = limit - width(mark)
        guard room >= 2 else { return String(prefix(of: text, columns: limit)) }
        return prefix(of: text, columns: (room + 1) / 2) + mark + suffix(of: text, columns: room / 2)
    }

    /// As much of the beginning as fits; no character is cut.
    static func prefix(of text: String, columns: Int) -> Substring {
        var end = text.startIndex
        var used = 0
        while end < text.endIndex {
            let next = text.index(after: end)
            used += width(text[end..<next])
            guard used <= columns else { break }
            end = next
        }
        return text[..<end]
    }

    private static func suffix(of text: String, columns: Int) -> Substring {
        var start = text.endIndex
        var used = 0
        while start > text.startIndex {
            let previous = text.index(before: start)
            used += width(text[previous..<start])
            guard used <= columns else { break }
            start = previous
        }
        return text[start...]
    }

    /// A text that takes exactly so many columns, filled with spaces or cut at its end.
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
        // Vowels and final consonants of Hangul join the wide consonant before them.
        if (0x1160...0x11FF).contains(scalar.value) { return 0 }
        if scalar.properties.isEmojiPresentation { return 2 }
        return wideRanges.contains { $0.contains(scalar.value) } ? 2 : 1
    }

    /// What Unicode's East Asian Width calls wide or fullwidth, in blocks.
    private static let wideRanges: [ClosedRange<UInt32>] = [
        0x1100...0x115F, 0x2E80...0x303E, 0x3041...0x4DBF, 0x4E00...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3,
        0xF900...0xFAFF, 0xFE10...0xFE19, 0xFE30...0xFE6F, 0xFF01...0xFF60, 0xFFE0...0xFFE6,
        0x16FE0...0x18DFF, 0x1AFF0...0x1B2FF, 0x1F200...0x1F2FF, 0x1F300...0x1F64F, 0x1F680...0x1F6FF,
        0x1F900...0x1FAFF, 0x20000...0x3FFFD,
    ]
}
