import Glibc
import MartletClientChild
import MartletTestSupport

/// A child process that stores and reads through a session.
enum ClientChild {
    /// Runs the process until it ends or is killed by SIGKILL.
    ///
    /// - Parameters:
    ///   - count: The number of output characters after which the process is killed; never for `nil`.
    ///   - delay: The delay before the kill, in microseconds.
    /// - Returns: The output, and the exit status or the number of the signal.
    static func run(
        _ work: CacheWork, killAfter count: Int? = nil, delay: UInt32 = 0
    ) async throws -> (output: String, status: Int32) {
        try await run(work.words, killAfter: count, delay: delay)
    }

    /// Runs the process with the arguments of any work.
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
