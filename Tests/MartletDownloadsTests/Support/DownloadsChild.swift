import Foundation
import MartletTestSupport
import MartletTransport

/// A process that downloads, which may be killed.
final class DownloadsChild: Sendable {
    /// How it ended.
    struct Ending: Sendable {
        /// The lines it wrote.
        var lines: [String]
        /// Its exit status, or the signal that ended it.
        var status: Int32
        /// Whether a signal ended it.
        var isKilled: Bool

        /// The first line that begins so.
        func line(_ prefix: String) -> String? { lines.first { $0.hasPrefix(prefix) } }

        /// The number behind `name=` in a line that begins so.
        func number(_ name: String, of prefix: String) -> UInt64? {
            line(prefix)?.split(separator: " ").first { $0.hasPrefix(name + "=") }
                .flatMap { UInt64($0.dropFirst(name.count + 1)) }
        }
    }

    /// Where the program is: beside that of the tests.
    static var program: String { get throws { try PipedProcess.program("MartletDownloadsChild") } }

    /// The process.
    let identifier: pid_t
    private let ended: OneShot<Ending>

    private init(_ identifier: pid_t, _ ended: OneShot<Ending>) {
        self.identifier = identifier
        self.ended = ended
    }

    /// Starts it.
    /// - Parameters:
    ///   - words: What it is to do.
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

    /// Runs it to its end.
    static func run(_ words: [String], through shell: String? = nil) async throws -> Ending {
        try await start(words, through: shell).end()
    }

    /// Waits for its end.
    func end() async throws -> Ending {
        let limit = MonotonicTime.now().advanced(by: .seconds(300))
        switch await ended.wait(until: limit, on: .sharedOrStalled) {
        case .value(let ending): return ending
        case .timedOut, .interrupted:
            kill(identifier, SIGKILL)
            throw CocoaError(.userCancelled)
        }
    }

    /// Ends it as a power cut would, but for the disk.
    func killAtOnce() {
        kill(identifier, SIGKILL)
    }
}
