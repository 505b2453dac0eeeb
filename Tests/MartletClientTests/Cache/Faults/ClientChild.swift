import Glibc
import MartletClientChild
import MartletTestSupport

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
        try await PipedProcess.run {
            let process = try PipedProcess.start([PipedProcess.program("MartletClientChild")] + words)
            var output: [UInt8] = []
            while case let bytes = process.read(upTo: 1), !bytes.isEmpty {
                output += bytes
                if output.count == count {
                    usleep(delay)
                    process.kill()
                }
            }
            return (String(decoding: output, as: UTF8.self), process.end().status)
        }
    }
}
