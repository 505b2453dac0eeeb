import MartletTestSupport

/// A process that stores and reads in a folder.
enum CacheChild {
    /// Runs it, and ends it by SIGKILL once it has done so many things; never for `nil`.
    ///
    /// - Returns: what it wrote, and its exit status.
    static func run(
        _ folder: String, limit: Int, seed: Int, count: Int, urls: Int, maximum: Int, killAfter: Int? = nil
    ) async throws -> (output: String, status: Int32) {
        try await PipedProcess.run {
            let words = [limit, seed, count, urls, maximum].map { "\($0)" }
            let process = try PipedProcess.start([PipedProcess.program("MartletCacheChild"), folder] + words)
            var output: [UInt8] = []
            while case let bytes = process.read(upTo: 1), !bytes.isEmpty {
                output += bytes
                if output.count == killAfter { process.kill() }
            }
            return (String(decoding: output, as: UTF8.self), process.end().status)
        }
    }
}
