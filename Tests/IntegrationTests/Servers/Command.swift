import Foundation

/// Programs that run to their end.
enum Command {
    /// Runs a program and waits for its end without blocking a thread.
    ///
    /// - Returns: its exit status, and the text of both outputs.
    /// - Throws: `ServerFailure` when the program is not installed.
    static func run(_ program: String, _ arguments: [String]) async throws -> (status: Int32, output: String) {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let child = try await ChildProcess.start(
            program, arguments, in: directory.path, outputPath: directory.appending("output"))
        let status = await child.waitForExit()
        return (status, child.output)
    }

    /// Runs a program that has to succeed.
    ///
    /// - Throws: `ServerFailure` with the program's output when its exit status is not 0.
    @discardableResult
    static func succeed(_ program: String, _ arguments: [String]) async throws -> String {
        let (status, output) = try await run(program, arguments)
        guard status == 0 else {
            let line = ([program] + arguments).joined(separator: " ")
            throw ServerFailure(program: line, reason: "exit status \(status)", log: output)
        }
        return output
    }
}
