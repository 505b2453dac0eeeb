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
