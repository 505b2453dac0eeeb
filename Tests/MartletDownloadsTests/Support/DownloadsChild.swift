import Foundation
import MartletTestSupport
import MartletTransport

/// A process that downloads, which a test may kill.
final class DownloadsChild: Sendable {
    /// The result of a process.
    struct Ending: Sendable {
        /// The lines that the process wrote.
        var lines: [String]
        /// The exit status, or the signal that ended the process.
        var status: Int32
        /// Whether a signal ended the process.
        var isKilled: Bool

        /// The first line with the given prefix.
        func line(_ prefix: String) -> String? { lines.first { $0.hasPrefix(prefix) } }

        /// The number after `name=` in the first line with the given prefix.
        func number(_ name: String, of prefix: String) -> UInt64? {
            line(prefix)?.split(separator: " ").first { $0.hasPrefix(name + "=") }
                .flatMap { UInt64($0.dropFirst(name.count + 1)) }
        }
    }

    /// The path of the program, next to that of the tests.
    static var program: String { get throws { try PipedProcess.program("MartletDownloadsChild") } }

    /// The process identifier.
    let identifier: pid_t
    private let ended: OneShot<Ending>

    private init(_ identifier: pid_t, _ ended: OneShot<Ending>) {
        self.identifier = identifier
        self.ended = ended
    }

    /// Starts the process.
    /// - Parameters:
    ///   - words: The command line arguments.
    ///   - shell: A script that runs it, as `"$0" "$@"`; `nil` for none.
    static func start(_ words: [String], through shell: String? = nil) async throws -> DownloadsChild {
        let ended = OneShot<Ending>()
        let program = try program
        let line = shell.map { ["/bin/sh", "-c", $0, program] + words } ?? [program] + words
        let identifier: pid_t = try await withCheckedThrowingContinuation { continuation in
            // Reading from the pipe and waiting block, and tasks run on the threads of the global queues.
            Thread.detachNewThread {
                let process: PipedProcess
                do {
                    process = try PipedProcess.start(line)
                } catch {
                    continuation.resume(throwing: error)
                    return
                }
                continuation.resume(returning: process.identifier)
                let output = process.readToEnd()
                let end = process.end()
                let lines = String(decoding: output, as: UTF8.self).split(separator: "\n").map(String.init)
                ended.fulfill(Ending(lines: lines, status: end.status, isKilled: end.isSignal))
            }
        }
        return DownloadsChild(identifier, ended)
    }

    /// Runs the process to its end.
    static func run(_ words: [String], through shell: String? = nil) async throws -> Ending {
        try await start(words, through: shell).end()
    }

    /// Waits for the end of the process.
    func end() async throws -> Ending {
        let limit = MonotonicTime.now().advanced(by: .seconds(300))
        switch await ended.wait(until: limit, on: .sharedOrStalled) {
        case .value(let ending): return ending
        case .timedOut, .interrupted:
            kill(identifier, SIGKILL)
            throw CocoaError(.userCancelled)
        }
    }

    /// Kills the process, as a power cut would, except for the disk.
    func killAtOnce() {
        kill(identifier, SIGKILL)
    }
}
