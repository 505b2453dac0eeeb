import Martlet
import MartletTransport
import SystemPackage

/// A file from some byte on, piece by piece.
struct FileTail: AsyncSequence, Sendable {
    typealias Element = [UInt8]

    let path: String
    let offset: Int64

    /// An open file, which closes with its last user.
    private final class Opened: Sendable {
        let file: FileDescriptor

        init(_ path: String, at offset: Int64) throws {
            file = try FileDescriptor.open(FilePath(path), .readOnly, options: .closeOnExec)
            try file.seek(offset: offset, from: .start)
        }

        deinit { try? file.close() }
    }

    struct Iterator: AsyncIteratorProtocol {
        fileprivate let path: String
        fileprivate let offset: Int64
        private var opened: Opened?

        fileprivate init(path: String, offset: Int64) {
            self.path = path
            self.offset = offset
        }

        mutating func next() async throws -> [UInt8]? {
            let (path, offset, before) = (self.path, self.offset, self.opened)
            let result = await BlockingWorkers.shared.run {
                Result {
                    let opened = try before ?? Opened(path, at: offset)
                    return (opened, try DescriptorReading.read(opened.file, atMost: 64 * 1024))
                }
            }
            let (opened, piece) = try result.get()
            self.opened = opened
            return piece.isEmpty ? nil : piece
        }

        mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> [UInt8]? {
            try await next()
        }
    }

    func makeAsyncIterator() -> Iterator { Iterator(path: path, offset: offset) }
}
