import Glibc
import Martlet
import MartletTransport
import SystemPackage

/// Standard input, or what a file has that is no plain one, piece by piece: pipes, devices, terminals.
struct FileInput: AsyncSequence, Sendable {
    typealias Element = [UInt8]

    /// They block for as long as nobody writes, whatever becomes of the transfer meanwhile, so they do not take workers away from
    /// others.
    private static let workers = BlockingWorkers(threadLimit: 16)

    /// An open file that is closed with its last reference.
    private final class Opened: Sendable {
        let descriptor: FileDescriptor

        init(_ path: String) throws {
            descriptor = try FileDescriptor.open(FilePath(path), .readOnly, options: .closeOnExec)
        }

        deinit {
            try? descriptor.close()
        }
    }

    struct Iterator: AsyncIteratorProtocol {
        fileprivate let path: String?
        private var file: Opened?

        fileprivate init(path: String?) {
            self.path = path
        }

        mutating func next() async throws -> [UInt8]? {
            let (path, opened) = (path, file)
            let result = await FileInput.workers.run { () -> Result<(Opened?, [UInt8]), any Error> in
                Result {
                    let file = try opened ?? path.map { try Opened($0) }
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

    init(_ path: String?) {
        self.path = path
    }

    func makeAsyncIterator() -> Iterator { Iterator(path: path) }

    /// Whether a file has to be read to know how long it is, and can be read but once.
    static func isStream(_ path: String) -> Bool {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { return false }
        return [S_IFIFO, S_IFCHR].contains(status.st_mode & S_IFMT)
    }
}

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
