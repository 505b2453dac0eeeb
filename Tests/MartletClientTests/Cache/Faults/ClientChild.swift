import Dispatch
import Foundation
import MartletClientChild

/// A process that stores and reads through a session.
enum ClientChild {
    /// Runs it to its end, or ends it by SIGKILL.
    ///
    /// - Parameters:
    ///   - count: After how many letters of what it says it is killed; never for `nil`.
    ///   - delay: How many microseconds behind these.
    /// - Returns: what it said, and its exit status or the number of the signal.
    static func run(
        _ work: CacheWork, killAfter count: Int? = nil, delay: UInt32 = 0
    ) async throws -> (output: String, status: Int32) {
        try await run(work.words, killAfter: count, delay: delay)
    }

    /// The same for the words of any work.
    static func run(
        _ words: [String], killAfter count: Int? = nil, delay: UInt32 = 0
    ) async throws -> (output: String, status: Int32) {
        try await withCheckedThrowingContinuation { continuation in
            // Reading from the pipe blocks.
            DispatchQueue.global().async {
                continuation.resume(
                    with: Result { try runBlocking(words, killAfter: count, delay: delay) })
            }
        }
    }

    private static func runBlocking(
        _ words: [String], killAfter count: Int?, delay: UInt32
    ) throws -> (output: String, status: Int32) {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
            .deletingLastPathComponent().appendingPathComponent("MartletClientChild")
        process.arguments = words
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run()
        var output: [UInt8] = []
        while let bytes = try pipe.fileHandleForReading.read(upToCount: 1), !bytes.isEmpty {
            output += bytes
            if output.count == count {
                usleep(delay)
                kill(process.processIdentifier, SIGKILL)
            }
        }
        process.waitUntilExit()
        return (String(decoding: output, as: UTF8.self), process.terminationStatus)
    }
}
