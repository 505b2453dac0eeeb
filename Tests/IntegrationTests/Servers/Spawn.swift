import Foundation
import Glibc
import MartletTestSupport

/// Starts programs and waits for their end, each on a separate thread.
///
/// A child asks the kernel to be ended with its parent (`PR_SET_PDEATHSIG`), and for the kernel the parent is the
/// *thread* that started it. Swift's pool and Dispatch end idle threads, and the servers would end with them; this
/// thread stays as long as its child.
enum Spawn {
    /// Starts a program that inherits only the descriptors named here (`exec` closes all others of this process),
    /// blocks and ignores no signal, and gets SIGTERM when this process ends in any way.
    ///
    /// - Parameters:
    ///   - path: the path of the program.
    ///   - arguments: without its name.
    ///   - directory: the working directory of the program.
    ///   - input: its standard input; empty input by default.
    ///   - outputPath: a new file for both its outputs.
    ///   - didExit: called once, on the thread, with the exit status or the number of the signal.
    /// - Returns: the process identifier.
    static func start(
        _ path: String, _ arguments: [String], in directory: String, input: Int32?, outputPath: String,
        didExit: @escaping @Sendable (Int32) -> Void
    ) async throws -> pid_t {
        let setpriv = try Executable.find("setpriv")
        return try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                let started = Result<pid_t, any Error> {
                    // Both wrappers replace themselves with the next program, so that there is one process.
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
