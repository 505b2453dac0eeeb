import Foundation
import MartletTesting

/// A large file without repeated content, and its comparison with another, by programs that read it in pieces.
enum LargeFile {
    /// Writes a file of the test pattern, and yields to other tests in between.
    static func write(_ byteCount: Int, to path: String) async throws {
        let handle = try InputFile.make(path)
        defer { try? handle.close() }
        let pieceByteCount = 1 << 20
        for offset in stride(from: 0, to: byteCount, by: pieceByteCount) {
            let count = min(pieceByteCount, byteCount - offset)
            await Task.yield()
            try handle.write(contentsOf: Data(TestPattern.bytes(from: UInt64(offset), count: count)))
        }
    }

    /// Makes a sparse file of zeros, which takes no disk space.
    static func makeHole(_ byteCount: Int, at path: String) throws {
        let handle = try InputFile.make(path)
        defer { try? handle.close() }
        try handle.truncate(atOffset: UInt64(byteCount))
    }

    /// Throws unless two files are equal byte by byte.
    static func compare(_ left: String, _ right: String) async throws {
        try await Command.succeed("cmp", [left, right])
    }

    /// The same bytes as pieces, for a streamed body.
    struct Pieces: AsyncSequence, Sendable {
        let byteCount: Int

        struct AsyncIterator: AsyncIteratorProtocol {
            let byteCount: Int
            var offset = 0

            mutating func next() async -> [UInt8]? {
                guard offset < byteCount else { return nil }
                // A length that is not a multiple of any buffer size.
                let count = Swift.min(100_003, byteCount - offset)
                defer { offset += count }
                return TestPattern.bytes(from: UInt64(offset), count: count)
            }
        }

        func makeAsyncIterator() -> AsyncIterator {
            AsyncIterator(byteCount: byteCount)
        }
    }
}
