import Dispatch
import Glibc
import Martlet

/// A process that sends the requests of an offline queue: this program with the words `serve queue`.
struct SoakQueue: Sendable {
    let directory: String

    /// Opens a queue on a directory, with short delays between retries.
    static func open(
        _ directory: String, sends: Bool = true, session: HTTPSession = HTTPSession()
    ) async throws -> OfflineQueue {
        try await OfflineQueue(
            session: session, directory: FilePath(directory),
            options: OfflineQueueOptions(
                limits: OfflineLimits(requests: 1_000_000, bytes: .gibibytes(8)),
                backoff: OfflineBackoff(initialDelay: .milliseconds(1), maximumDelay: .milliseconds(20)),
                sendsRequests: sends
            ))
    }

    /// Sends requests until the queue is empty.
    func run() async throws {
        let queue = try await SoakQueue.open(directory)
        try await queue.drained
        await queue.close()
    }

    /// Runs the queue as a separate process.
    /// - Parameter started: Receives the process ID.
    /// - Returns: The exit status; `nil` if the process was killed.
    func runAsProcess(_ started: @escaping @Sendable (pid_t) -> Void) async throws -> Int32? {
        let words = [CommandLine.arguments[0], "serve", "queue", directory]
        return try await withCheckedThrowingContinuation { continuation in
            // Waiting for the process blocks.
            DispatchQueue.global().async {
                continuation.resume(
                    with: Result {
                        let process = try Peer.spawn(words, input: STDERR_FILENO, output: STDERR_FILENO)
                        started(process)
                        var status: Int32 = 0
                        while unsafe waitpid(process, &status, 0) < 0, errno == EINTR {}
                        return status & 0x7F == 0 ? (status >> 8) & 0xFF : nil
                    })
            }
        }
    }
}
