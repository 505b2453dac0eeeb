import Foundation

/// The program `martlet` that was built with these tests.
enum Program {
    /// The result of a run.
    struct Run {
        /// The exit code, or the number of the signal that ended the program.
        let status: Int32
        /// The bytes that it wrote to standard output.
        let output: [UInt8]
        /// The text that it wrote to standard error.
        let errors: String

        /// Standard output as text.
        var text: String { String(decoding: output, as: UTF8.self) }
    }

    /// The path of the program: in the directory of this test bundle.
    static let path = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        .deletingLastPathComponent().appendingPathComponent("martlet").path

    /// The maximum duration of a run, in seconds. It ends hangs, even on the slowest machine and under a sanitizer.
    private static let limit = MartletProgram.isSanitized ? "1800" : "600"

    /// Arguments for `env` that remove the proxies of the machine.
    static let withoutProxies = [
        "http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTPS_PROXY", "ALL_PROXY",
    ].flatMap { ["-u", $0] }

    /// Runs the program to its end, without a proxy in its environment, for at most ``limit`` seconds.
    /// - Parameters:
    ///   - input: its standard input.
    ///   - directory: its working directory; a temporary one by default.
    ///   - environment: more variables, as `NAME=value`.
    ///   - body: a closure that runs at the same time; the program is ended if it throws.
    static func run(
        _ arguments: [String], input: [UInt8] = [], in directory: TemporaryDirectory? = nil,
        environment: [String] = [], while body: (RunningProgram) async throws -> Void = { _ in }
    ) async throws -> Run {
        try await run(path, arguments, input: input, in: directory, environment: environment, while: body)
    }

    /// Runs the program to its end, like the function above.
    static func run(_ arguments: String..., input: String = "") async throws -> Run {
        try await run(path, arguments, input: Array(input.utf8), in: nil, environment: [])
    }

    /// Runs any program in the same way.
    static func run(
        _ program: String, _ arguments: [String], input: [UInt8], in given: TemporaryDirectory?,
        environment: [String] = [], while body: (RunningProgram) async throws -> Void = { _ in }
    ) async throws -> Run {
        let own = try TemporaryDirectory()
        defer { own.remove() }
        try InputFile.write(Data(input), to: own.appending("in"))
        let script = "exec \"$@\" <\(own.appending("in")) >\(own.appending("out")) 2>\(own.appending("err"))"
        let variables = withoutProxies + environment
        // Tests that run in the background may have been started with SIGINT ignored.
        let child = try await ChildProcess.start(
            "sh",
            ["-c", script, "sh", "env", "--default-signal=INT"] + variables + ["timeout", limit, program]
                + arguments,
            in: given?.path ?? own.path, outputPath: own.appending("log"))
        let running = RunningProgram(child: child, directory: own)
        do {
            try await body(running)
        } catch {
            await child.stop()
            throw error
        }
        let status = await child.waitForExit()
        return Run(status: status, output: running.output, errors: running.errors)
    }
}
