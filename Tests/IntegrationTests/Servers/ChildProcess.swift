import Foundation
import Glibc
import Synchronization

/// A program that runs next to the tests. Waiting for its exit blocks no thread; it never outlives the tests.
final class ChildProcess: Sendable {
    private struct Life {
        /// The process identifier, once the program has started.
        var identifier: pid_t?
        /// The exit status, once the program has ended.
        var status: Int32?
        /// The waiters for the status.
        var waiters: [CheckedContinuation<Int32, Never>] = []
    }

    /// Written by the task that starts the program and by the thread that sees it end, read by any task.
    private let life = Mutex(Life())

    /// The name or path of the program.
    let program: String
    /// The file that collects the program's standard output and standard error.
    let outputPath: String

    private init(program: String, outputPath: String) {
        self.program = program
        self.outputPath = outputPath
    }

    /// Starts a program, which the kernel ends when the test process ends in any way.
    ///
    /// - Parameters:
    ///   - program: a name, looked up in `PATH` and in Debian's directories for servers, or an absolute path.
    ///   - input: the descriptor that becomes its standard input; without one it reads nothing.
    ///   - outputPath: a file to write both its outputs to.
    /// - Throws: `ServerFailure` when the program is not installed, or the error of starting it.
    static func start(
        _ program: String, _ arguments: [String], in directory: String, input: Int32? = nil,
        outputPath: String
    ) async throws -> ChildProcess {
        let path = try Executable.find(program)
        let child = ChildProcess(program: program, outputPath: outputPath)
        let started = try await Spawn.start(
            path, arguments, in: directory, input: input, outputPath: outputPath, didExit: child.didExit)
        child.life.withLock { $0.identifier = started }
        return child
    }

    /// The process identifier, for queries to the kernel; `nil` before the start and after the end.
    var identifier: pid_t? {
        life.withLock { $0.status == nil ? $0.identifier : nil }
    }

    /// Whether the program has ended.
    var hasExited: Bool {
        life.withLock { $0.status != nil }
    }

    /// Waits until the program has ended, by itself or by a signal.
    ///
    /// - Returns: its exit status, or the number of the signal.
    func waitForExit() async -> Int32 {
        await withCheckedContinuation { continuation in
            let status = life.withLock { life in
                if life.status == nil { life.waiters.append(continuation) }
                return life.status
            }
            if let status { continuation.resume(returning: status) }
        }
    }

    /// The time without a result after which a program counts as hung, in seconds.
    private static let patience = 300

    /// Waits until an effect of the program can be observed: a port, a line of output.
    ///
    /// - Throws: `ServerFailure` when the program ends first, or after five minutes without the effect.
    func wait(for what: String, until isSeen: () throws -> Bool) async throws {
        let deadline = ContinuousClock.now + .seconds(Self.patience)
        while try !isSeen() {
            guard !hasExited else {
                throw ServerFailure(program: program, reason: "ended before \(what)", log: output)
            }
            guard ContinuousClock.now < deadline else {
                throw ServerFailure(
                    program: program, reason: "\(Self.patience) s without \(what)", log: output)
            }
            // This is the only wait with a delay: no event reports the progress of another process.
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    /// Waits until the program's outputs contain `text`.
    ///
    /// - Throws: the errors of `wait(for:until:)`.
    func waitForOutput(_ text: String) async throws {
        try await wait(for: "'\(text)'") { output.contains(text) }
    }

    /// Ends the program: SIGTERM, then SIGKILL after two minutes. Returns when it has ended.
    func stop() async {
        send(SIGTERM)
        // The delay is long: on a slow machine an early kill would prevent the normal end that tests expect.
        let hung = DispatchWorkItem { [self] in send(SIGKILL) }
        DispatchQueue.global().asyncAfter(deadline: .now() + 120, execute: hung)
        _ = await waitForExit()
        hung.cancel()
    }

    /// Kills the program, as a crash would: no protocol is shut down cleanly.
    func kill() async {
        send(SIGKILL)
        _ = await waitForExit()
    }

    /// The program's output so far.
    var output: String {
        OutputFile.contents(of: outputPath)
    }

    private func send(_ signal: Int32) {
        life.withLock { life in
            // Once the program has ended, the kernel may assign its identifier to another process.
            if life.status == nil, let identifier = life.identifier { Glibc.kill(identifier, signal) }
        }
    }

    private func didExit(_ status: Int32) {
        let waiters = life.withLock { life in
            life.status = status
            defer { life.waiters = [] }
            return life.waiters
        }
        for waiter in waiters { waiter.resume(returning: status) }
    }
}
