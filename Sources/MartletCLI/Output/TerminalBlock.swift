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
