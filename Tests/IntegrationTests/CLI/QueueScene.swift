import Foundation
import Glibc
import MartletTesting
import Testing

/// A queue directory for the program, removed when its owner calls `remove()`.
struct QueueScene {
    /// The parent directory, which is the working directory and the home of the program.
    let directory: TemporaryDirectory
    /// The queue directory.
    let path: String

    init() throws {
        directory = try TemporaryDirectory()
        path = directory.appending("queue")
    }

    func remove() { directory.remove() }

    /// Runs `martlet queue` with a command on the directory.
    func run(
        _ command: String, _ arguments: [String] = [], input: String = ""
    ) async throws -> Program.Run {
        try await Program.run(
            ["queue", command, "--queue", path] + arguments, input: Array(input.utf8), in: directory)
    }

    /// Adds a request.
    /// - Returns: Its number, as printed.
    @discardableResult
    func add(_ arguments: String...) async throws -> String {
        let run = try await run("add", arguments)
        try #require(run.status == 0, "\(run.errors)")
        return run.text.trimmingCharacters(in: .newlines)
    }

    /// The objects that `queue list --json` prints.
    var list: [[String: Any]] {
        get async throws {
            let run = try await run("list", ["--json"])
            #expect(run.status == 0 && run.errors.isEmpty, "\(run.errors)")
            return try run.objects
        }
    }

    /// Runs `martlet queue run` until it has printed a text, and ends it with a signal.
    /// - Parameter body: A closure that runs before the signal.
    func run(
        _ arguments: [String] = [], until text: String, signal: Int32 = SIGINT,
        _ body: () async throws -> Void = {}
    ) async throws -> (status: Int32, output: String) {
        let child = try await ChildProcess.start(
            Program.path, ["queue", "run", "--queue", path, "--noproxy", "*"] + arguments, in: directory.path,
            outputPath: directory.appending("run.log"))
        do {
            try await child.waitForOutput(text)
            try await body()
        } catch {
            await child.kill()
            throw error
        }
        if let identifier = child.identifier { kill(identifier, signal) }
        return (await child.waitForExit(), child.output)
    }

    /// The contents of all files of the queue.
    var contents: Data {
        get throws {
            var all = Data()
            let files = try #require(FileManager.default.enumerator(atPath: path))
            for case let name as String in files {
                all += (try? Data(contentsOf: URL(fileURLWithPath: "\(path)/\(name)"))) ?? Data()
            }
            return all
        }
    }
}
