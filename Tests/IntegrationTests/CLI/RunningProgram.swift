/// The program while it runs, as ``Program`` has started it.
struct RunningProgram: Sendable {
    /// The process, with those that stand before the program.
    let child: ChildProcess
    /// Where its outputs are.
    let directory: TemporaryDirectory

    /// What it has written to standard output so far.
    var output: [UInt8] { OutputFile.bytes(of: directory.appending("out")) }
    /// What it has written to standard error so far.
    var errors: String { OutputFile.contents(of: directory.appending("err")) }

    /// Waits until a text is in what it has written to standard output.
    /// - Throws: `ServerFailure` when the program ends without it.
    func waitForOutput(_ text: String) async throws {
        try await child.wait(for: text) { String(decoding: output, as: UTF8.self).contains(text) }
    }

    /// Waits until a text is in what it has written to standard error; else as ``waitForOutput(_:)``.
    func waitForErrors(_ text: String) async throws {
        try await child.wait(for: text) { errors.contains(text) }
    }
}
