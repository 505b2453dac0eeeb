import Glibc

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
