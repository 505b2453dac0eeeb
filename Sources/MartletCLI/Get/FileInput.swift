import Glibc
import Martlet
import MartletTransport
import SystemPackage

/// Standard input, or a file from some byte on, piece by piece: also what is no plain one, such as pipes, devices, terminals.
struct FileInput: AsyncSequence, Sendable {
    typealias Element = [UInt8]

    /// They block for as long as nobody writes, whatever becomes of the transfer meanwhile, so they do not take workers away from
    /// others.
    private static let workers = BlockingWorkers(threadLimit: 16)

    /// An open file that is closed with its last reference.
    private final class Opened: Sendable {
        let descriptor: FileDescriptor

        init(_ path: String, at offset: Int64) throws {
            descriptor = try FileDescriptor.open(FilePath(path), .readOnly, options: .closeOnExec)
            if offset > 0 { try descriptor.seek(offset: offset, from: .start) }
        }

        deinit { try? descriptor.close() }
    }

    struct Iterator: AsyncIteratorProtocol {
        fileprivate let input: FileInput
        private var file: Opened?

        fileprivate init(_ input: FileInput) { self.input = input }

        mutating func next() async throws -> [UInt8]? {
            let (input, opened) = (input, file)
            let result = await FileInput.workers.run {
                Result {
                    let file = try opened ?? input.path.map { try Opened($0, at: input.offset) }
                    let descriptor = file?.descriptor ?? .standardInput
                    return (file, try DescriptorReading.read(descriptor, atMost: 64 * 1024))
                }
            }
            let piece: [UInt8]
            (file, piece) = try result.get()
            return piece.isEmpty ? nil : piece
        }

        mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> [UInt8]? {
            try await next()
        }
    }

    /// The file; nil for standard input.
    let path: String?
    /// The byte of the file at which it begins.
    let offset: Int64

    init(_ path: String?, at offset: Int64 = 0) {
        self.path = path
        self.offset = offset
    }

    func makeAsyncIterator() -> Iterator { Iterator(self) }

    /// Whether a file has to be read to know how long it is, and can be read but once.
    static func isStream(_ path: String) -> Bool {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { return false }
        return [S_IFIFO, S_IFCHR].contains(status.st_mode & S_IFMT)
    }
}
