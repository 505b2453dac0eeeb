import Glibc

/// Standard input and output, for whoever started this process.
enum Console {
    /// Prints a line and waits for one. It blocks the thread: call it where nothing is under way.
    static func pause(_ line: String) {
        print(line)
        fflush(nil)
        _ = readLine()
    }
}
