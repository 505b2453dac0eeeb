import Glibc

/// Standard input and output for communication with the process that started this one.
enum Console {
    /// Prints a line and waits for one. It blocks the thread and must be called while no request runs.
    static func pause(_ line: String) {
        print(line)
        fflush(nil)
        _ = readLine()
    }
}
