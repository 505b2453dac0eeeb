/// The running program, as ``Program`` has started it.
struct RunningProgram: Sendable {
    /// The process, including the wrapper programs in front of it.
    let child: ChildProcess
    /// The directory of its output files.
    let directory: TemporaryDirectory

    /// The bytes that it has written to standard output so far.
    var output: [UInt8] { OutputFile.bytes(of: directory.appending("out")) }
    /// The text that it has written to standard error so far.
    var errors: String { OutputFile.contents(of: directory.appending("err")) }

    /// Waits until standard output contains a text.
    /// - Throws: `ServerFailure` when the program ends without it.
    func waitForOutput(_ text: String) async throws {
        try await child.wait(for: text) { String(decoding: output, as: UTF8.self).contains(text) }
    }

    /// Waits until standard error contains a text; else like ``waitForOutput(_:)``.
    func waitForErrors(_ text: String) async throws {
        try await child.wait(for: text) { errors.contains(text) }
    }
}
