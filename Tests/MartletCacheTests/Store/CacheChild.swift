import MartletTestSupport

/// A child process that stores and reads in a directory.
enum CacheChild {
    /// Runs the child and kills it with SIGKILL after a number of operations; never for `nil`.
    ///
    /// - Returns: The output and the exit status.
    static func run(
        _ directory: String, limit: Int, seed: Int, count: Int, urls: Int, maximum: Int, killAfter: Int? = nil
    ) async throws -> (output: String, status: Int32) {
        try await PipedProcess.run {
            let words = [limit, seed, count, urls, maximum].map { "\($0)" }
            let process = try PipedProcess.start([PipedProcess.program("MartletCacheChild"), directory] + words)
            var output: [UInt8] = []
            while case let bytes = process.read(upTo: 1), !bytes.isEmpty {
                output += bytes
                if output.count == killAfter { process.kill() }
            }
            return (String(decoding: output, as: UTF8.self), process.end().status)
        }
    }
}
