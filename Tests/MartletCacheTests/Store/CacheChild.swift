import Dispatch
import Foundation

/// A process that stores and reads in a folder.
enum CacheChild {
    /// Runs it, and ends it by SIGKILL once it has done so many things; never for `nil`.
    ///
    /// - Returns: what it wrote, and its exit status.
    static func run(
        _ folder: String, limit: Int, seed: Int, count: Int, urls: Int, maximum: Int, killAfter: Int? = nil
    ) async throws -> (output: String, status: Int32) {
        try await withCheckedThrowingContinuation { continuation in
            // Reading from the pipe blocks.
            DispatchQueue.global().async {
                continuation.resume(
                    with: Result {
                        try runBlocking(folder, [limit, seed, count, urls, maximum], killAfter: killAfter)
                    })
            }
        }
    }

    private static func runBlocking(
        _ folder: String, _ numbers: [Int], killAfter: Int?
    ) throws -> (output: String, status: Int32) {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
            .deletingLastPathComponent().appendingPathComponent("MartletCacheChild")
        process.arguments = [folder] + numbers.map { "\($0)" }
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run()
        var output: [UInt8] = []
        while let bytes = try pipe.fileHandleForReading.read(upToCount: 1), !bytes.isEmpty {
            output += bytes
            if output.count == killAfter { kill(process.processIdentifier, SIGKILL) }
        }
        process.waitUntilExit()
        return (String(decoding: output, as: UTF8.self), process.terminationStatus)
    }
}
