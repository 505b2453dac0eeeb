import Foundation
import Glibc
import MartletTestSupport

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
                didExit(PipedProcess.end(of: identifier).status)
            }
        }
    }

    private static func spawn(_ line: [String], input: Int32?, outputPath: String) throws -> pid_t {
        do {
            return try unsafe PipedProcess.spawn(line) { actions in
                if let input {
                    unsafe posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO)
                } else {
                    unsafe posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
                }
                let toFile = O_WRONLY | O_CREAT | O_TRUNC | O_APPEND
                unsafe posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, outputPath, toFile, 0o644)
                unsafe posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO)
            }
        } catch {
            throw ServerFailure(
                program: line.joined(separator: " "), reason: "could not be started: errno \(error.code)")
        }
    }
}
