import Martlet
import MartletTransport
import SystemPackage

/// Standard input, piece by piece, read on a thread of its own.
struct StandardInput: AsyncSequence, Sendable {
    typealias Element = [UInt8]

    /// It blocks for as long as nobody writes, so it does not take a worker away from others.
    private static let workers = BlockingWorkers(threadLimit: 1)

    struct Iterator: AsyncIteratorProtocol {
        mutating func next() async throws -> [UInt8]? {
            let result = await StandardInput.workers.run {
                Result { try DescriptorReading.read(.standardInput, atMost: 64 * 1024) }
            }
            let piece = try result.get()
            return piece.isEmpty ? nil : piece
        }

        mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> [UInt8]? {
            try await next()
        }
    }

    func makeAsyncIterator() -> Iterator { Iterator() }
}
