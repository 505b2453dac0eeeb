/// Texts measured in columns of a terminal, as `wcwidth` counts them: two for wide characters, none for marks that
/// combine.
enum ColumnText {
    /// How many columns a text takes.
    static func width(_ text: some StringProtocol) -> Int {
        text.unicodeScalars.reduce(0) { $0 + width($1) }
    }

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
        0x16FE0...0x18DFF,
        0x1AFF0...0x1B2FF, 0x1F200...0x1F2FF, 0x1F300...0x1F64F, 0x1F680...0x1F6FF, 0x1F900...0x1FAFF,
        0x20000...0x3FFFD,
    ]
}
