import Dispatch
import Glibc

/// A process that stores and reads through a session and can be killed: this program with the words `serve cache`.
enum CacheWorker {
    /// The outcome of a process.
    struct Life: Sendable {
        /// The number of each letter of ``CacheWork`` in its output.
        var letters: [UInt8: Int] = [:]
        /// The exit status; `nil` if a signal ended the process.
        var status: Int32?

        /// The number of times a letter was printed.
        subscript(_ letter: Character) -> Int { letter.asciiValue.flatMap { letters[$0] } ?? 0 }
    }

    /// Runs the process to its end, or kills it `delay` microseconds after `count` letters.
    static func run(_ work: CacheWork, killAfter count: Int? = nil, delay: UInt32 = 0) async throws -> Life {
        try await withCheckedThrowingContinuation { continuation in
            // Reading from the pipe blocks.
            DispatchQueue.global().async {
                continuation.resume(with: Result { try runBlocking(work, killAfter: count, delay: delay) })
            }
        }
    }

    private static func runBlocking(_ work: CacheWork, killAfter count: Int?, delay: UInt32) throws -> Life {
        let (input, output) = (try Peer.pipe(), try Peer.pipe())
        let process = try Peer.spawn(
            [CommandLine.arguments[0], "serve", "cache"] + work.words, input: input.0, output: output.1)
        close(input.0)
        close(output.1)
        defer {
            close(input.1)
            close(output.0)
        }
        var life = Life()
        var said = 0
        var letter: UInt8 = 0
        while true {
            let result = unsafe read(output.0, &letter, 1)
            if result < 0, errno == EINTR { continue }
            guard result == 1 else { break }
            life.letters[letter, default: 0] += 1
            said += 1
            if said == count {
                usleep(delay)
                kill(process, SIGKILL)
            }
        }
        var status: Int32 = 0
        while unsafe waitpid(process, &status, 0) < 0, errno == EINTR {}
        life.status = status & 0x7F == 0 ? (status >> 8) & 0xFF : nil
        return life
    }
}
