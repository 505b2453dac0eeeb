import Foundation
import Glibc
import Synchronization

/// A program running beside the tests. Its exit is awaited without holding a thread; it never outlives the tests.
final class ChildProcess: Sendable {
    private struct Life {
        /// Known once the program has been started.
        var identifier: pid_t?
        /// Known once it has ended.
        var status: Int32?
        /// Those who wait for the status.
        var waiters: [CheckedContinuation<Int32, Never>] = []
    }

    /// Written by whoever starts the program and by the thread that sees it end, read by anybody.
    private let life = Mutex(Life())

    /// What was started, as it was named.
    let program: String
    /// The file that collects the program's standard output and standard error.
    let outputPath: String

    private init(program: String, outputPath: String) {
        self.program = program
        self.outputPath = outputPath
    }

    /// Starts a program, to be ended by the kernel when the test process ends in whatever way.
    ///
    /// - Parameters:
    ///   - program: a name, looked for in `PATH` and where Debian keeps servers, or an absolute path.
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

    /// The process id, for a look at what the kernel knows of it; `nil` before the start and after the end.
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

    /// How long a program is waited for before it counts as hung, in seconds.
    private static let patience = 300

    /// Waits until something that the program does can be seen from outside: a port, a line of output.
    ///
    /// - Throws: `ServerFailure` when the program ends first, or for five minutes nothing is seen.
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
            // The one wait by the clock: no event tells what another process has come to.
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    /// Waits until the program's outputs contain `text`.
    ///
    /// - Throws: as `wait(for:until:)` does.
    func waitForOutput(_ text: String) async throws {
        try await wait(for: "'\(text)'") { output.contains(text) }
    }

    /// Ends the program: SIGTERM, and SIGKILL if it is still there after two minutes. Returns when it has ended.
    func stop() async {
        send(SIGTERM)
        // Long: on a slow machine a program that is killed too soon has not ended by itself, which tests look for.
        let hung = DispatchWorkItem { [self] in send(SIGKILL) }
        DispatchQueue.global().asyncAfter(deadline: .now() + 120, execute: hung)
        _ = await waitForExit()
        hung.cancel()
    }

    /// Ends the program at once, as a crash would: no farewell of any protocol reaches its peers.
    func kill() async {
        send(SIGKILL)
        _ = await waitForExit()
    }

    /// All that the program has written to its outputs so far.
    var output: String {
        OutputFile.contents(of: outputPath)
    }

    private func send(_ signal: Int32) {
        life.withLock { life in
            // Once the program has ended, its number may be somebody else's.
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
