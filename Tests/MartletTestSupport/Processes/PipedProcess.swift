import Foundation
package import Glibc

/// A process whose standard output the tests read.
///
/// Foundation's `Process` is not used, because it crashes when there are many open descriptors: it reads past the end
/// of a buffer while it lists them. The functions below block and must be called in ``run(_:)``.
package struct PipedProcess: Sendable {
    /// The end of a process.
    package struct End: Sendable {
        /// The exit status, or the number of the signal.
        package let status: Int32
        /// Whether a signal ended it.
        package let isSignal: Bool
    }

    /// The error of a process that could not be started.
    package struct Failure: Error {
        /// The `errno` of the failed start.
        package let code: Int32
    }

    /// The process ID, unique while the process runs.
    package let identifier: pid_t
    private let output: Int32

    /// Runs blocking code on its own thread, because tasks run on the threads of the global queues.
    package static func run<Value: Sendable>(
        _ body: @escaping @Sendable () throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
        }
    }

    /// Returns the path of a program that is built next to the test program.
    package static func program(_ name: String) throws -> String {
        let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        return tests.prefix(through: tests.lastIndex(of: "/") ?? tests.startIndex) + name
    }

    /// Starts a program that inherits only an empty standard input, its output (read here) and standard error.
    /// - Parameter line: The program's path and its arguments.
    package static func start(_ line: [String]) throws -> PipedProcess {
        var ends: [Int32] = [-1, -1]
        // A socket pair is a pipe that no other program inherits, even if it is started at this moment.
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        guard unsafe socketpair(AF_UNIX, type, 0, &ends) == 0 else { throw Failure(code: errno) }
        defer { close(ends[1]) }

        do {
            let identifier = try unsafe spawn(line) { actions in
                unsafe posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
                unsafe posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO)
            }
            return PipedProcess(identifier: identifier, output: ends[0])
        } catch {
            close(ends[0])
            throw error
        }
    }

    /// Starts a program that blocks and ignores no signal.
    /// - Parameters:
    ///   - line: The program's path and its arguments.
    ///   - open: Adds the actions that open its descriptors.
    /// - Returns: The process ID.
    package static func spawn(
        _ line: [String], opening open: (inout posix_spawn_file_actions_t) -> Void
    ) throws(Failure) -> pid_t {
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        unsafe open(&actions)

        var attributes = posix_spawnattr_t()
        unsafe posix_spawnattr_init(&attributes)
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        unsafe sigemptyset(&signals)
        unsafe posix_spawnattr_setsigmask(&attributes, &signals)
        unsafe sigaddset(&signals, SIGPIPE)
        unsafe posix_spawnattr_setsigdefault(&attributes, &signals)
        unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

        var words = unsafe line.map { unsafe strdup($0) } + [nil]
        defer { unsafe words.forEach { unsafe free($0) } }
        var identifier: pid_t = 0
        let code = unsafe posix_spawn(&identifier, line[0], &actions, &attributes, &words, environ)
        guard code == 0 else { throw Failure(code: code) }
        return identifier
    }

    /// Waits until a process has ended.
    package static func end(of identifier: pid_t) -> End {
        var status: Int32 = 0
        while unsafe waitpid(identifier, &status, 0) < 0, errno == EINTR {}
        let signal = status & 0x7f
        return End(status: signal == 0 ? (status >> 8) & 0xff : signal, isSignal: signal != 0)
    }

    /// Returns the next bytes of the output; empty at its end.
    package func read(upTo count: Int = 65_536) -> [UInt8] {
        unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, length in
            repeat {
                length = unsafe Glibc.read(output, buffer.baseAddress, count)
            } while length < 0 && errno == EINTR
            length = max(length, 0)
        }
    }

    /// Returns the rest of the output.
    package func readToEnd() -> [UInt8] {
        var bytes: [UInt8] = []
        while case let more = read(), !more.isEmpty { bytes += more }
        return bytes
    }

    /// Waits for the end of the process. It must be called once, as the last call.
    package func end() -> End {
        close(output)
        return PipedProcess.end(of: identifier)
    }

    /// Kills the process with SIGKILL.
    package func kill() { Glibc.kill(identifier, SIGKILL) }
}
