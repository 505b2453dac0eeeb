import Foundation
import MartletTestSupport
import MartletTransport

/// A process with an offline queue, which a test may kill.
final class OfflineChild: Sendable {
    /// The result of a process.
    struct Ending: Sendable {
        /// The lines that the process wrote.
        var lines: [String]
        /// The exit status, or the signal that ended the process.
        var status: Int32

        /// The first line with the given prefix.
        func line(_ prefix: String) -> String? { lines.first { $0.hasPrefix(prefix) } }
    }

    /// The process identifier.
    let identifier: pid_t
    /// The lines of the process as they arrive.
    let lines: AsyncStream<String>
    private let ended: OneShot<Int32>

    private init(_ identifier: pid_t, _ lines: AsyncStream<String>, _ ended: OneShot<Int32>) {
        self.identifier = identifier
        self.lines = lines
        self.ended = ended
    }

    /// Starts the process.
    static func start(_ words: [String]) async throws -> OfflineChild {
        let (lines, continuation) = AsyncStream<String>.makeStream()
        let ended = OneShot<Int32>()
        let identifier: pid_t = try await withCheckedThrowingContinuation { started in
            // Reading from the pipe and waiting block, and tasks run on the threads of the global queues.
            Thread.detachNewThread {
                let process: PipedProcess
                do {
                    process = try PipedProcess.start([PipedProcess.program("MartletOfflineChild")] + words)
                } catch {
                    started.resume(throwing: error)
                    return
                }
                started.resume(returning: process.identifier)
                var rest: [UInt8] = []
                while case let piece = process.read(), !piece.isEmpty {
                    rest += piece
                    while let end = rest.firstIndex(of: 10) {
                        continuation.yield(String(decoding: rest[..<end], as: UTF8.self))
                        rest.removeSubrange(...end)
                    }
                }
                continuation.finish()
                ended.fulfill(process.end().status)
            }
        }
        return OfflineChild(identifier, lines, ended)
    }

    /// Runs the process to its end.
    static func run(_ words: [String]) async throws -> Ending {
        let child = try await start(words)
        var lines: [String] = []
        for await line in child.lines { lines.append(line) }
        return Ending(lines: lines, status: await child.end())
    }

    /// Kills the process, as a power cut would, except for the disk.
    func killAtOnce() {
        kill(identifier, SIGKILL)
    }

    /// Waits for the end of the process.
    @discardableResult
    func end() async -> Int32 {
        guard case .value(let status) = await ended.wait(until: .distantFuture, on: .sharedOrStalled) else {
            return -1
        }
        return status
    }
}
