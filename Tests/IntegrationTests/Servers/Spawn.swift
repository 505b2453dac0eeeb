import Foundation
import Glibc

/// Starts a program and waits for its end, on a thread of its own for each.
///
/// A child asks the kernel to be ended with its parent (`PR_SET_PDEATHSIG`), and to the kernel the parent is the
/// *thread* that started it. Swift's pool and Dispatch let idle threads go, and the servers would go with them; this
/// thread stays as long as its child.
enum Spawn {
    /// Starts a program that inherits no other descriptors than those named here (all that this process opens are
    /// closed by `exec`), blocks and ignores no signal, and gets SIGTERM
    /// when this process ends in whatever way.
    ///
    /// - Parameters:
    ///   - path: where the program is.
    ///   - arguments: without its name.
    ///   - directory: what the program's working directory will be.
    ///   - input: what becomes its standard input; nothing to read without one.
    ///   - outputPath: a file for both its outputs, made anew.
    ///   - didExit: called once, on the thread, with the exit status or the number of the signal.
    /// - Returns: the process id.
    static func start(
        _ path: String, _ arguments: [String], in directory: String, input: Int32?, outputPath: String,
        didExit: @escaping @Sendable (Int32) -> Void
    ) async throws -> pid_t {
        let setpriv = try Executable.find("setpriv")
        return try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                let started = Result<pid_t, any Error> {
                    // Each of the two becomes what it starts: there is one process, and it is the program.
                    let prefix = [setpriv, "--pdeathsig", "TERM", "env", "--chdir=\(directory)"]
                    return try spawn(prefix + [path] + arguments, input: input, outputPath: outputPath)
                }
                continuation.resume(with: started)
                guard case .success(let identifier) = started else { return }
                var status: Int32 = 0
                while unsafe waitpid(identifier, &status, 0) < 0, errno == EINTR {}
                let signal = status & 0x7f
                didExit(signal == 0 ? (status >> 8) & 0xff : signal)
            }
        }
    }

    private static func spawn(_ line: [String], input: Int32?, outputPath: String) throws -> pid_t {
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        if let input {
            unsafe posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO)
        } else {
            unsafe posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        }
        let toFile = O_WRONLY | O_CREAT | O_TRUNC | O_APPEND
        unsafe posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, outputPath, toFile, 0o644)
        unsafe posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO)

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
        let failure = unsafe posix_spawn(&identifier, line[0], &actions, &attributes, &words, environ)
        guard failure == 0 else {
            throw ServerFailure(
                program: line.joined(separator: " "), reason: "could not be started: errno \(failure)")
        }
        return identifier
    }
}
