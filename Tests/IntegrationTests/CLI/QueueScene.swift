import Foundation
import Glibc
import MartletTesting
import Testing

/// A queue's folder for the program, gone when its owner calls `remove()`.
struct QueueScene {
    /// The folder around it, which is the program's working directory, and its user's home.
    let directory: TemporaryDirectory
    /// The queue's folder.
    let path: String

    init() throws {
        directory = try TemporaryDirectory()
        path = directory.appending("queue")
    }

    func remove() { directory.remove() }

    /// Runs `martlet queue` with a command on the folder.
    func run(
        _ command: String, _ arguments: [String] = [], input: String = ""
    ) async throws -> Program.Run {
        try await Program.run(
            ["queue", command, "--queue", path] + arguments, input: Array(input.utf8), in: directory)
    }

    /// Adds a request.
    /// - Returns: Its number, as it was printed.
    @discardableResult
    func add(_ arguments: String...) async throws -> String {
        let run = try await run("add", arguments)
        try #require(run.status == 0, "\(run.errors)")
        return run.text.trimmingCharacters(in: .newlines)
    }

    /// What `queue list --json` prints.
    var list: [[String: Any]] {
        get async throws {
            let run = try await run("list", ["--json"])
            #expect(run.status == 0 && run.errors.isEmpty, "\(run.errors)")
            return try run.objects
        }
    }

    /// Runs `martlet queue run` until it has printed something, and ends it with a signal.
    /// - Parameter body: What is to be done before.
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

    /// All that is in the files of the queue.
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
