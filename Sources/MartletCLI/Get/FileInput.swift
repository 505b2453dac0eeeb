import Glibc
import Martlet

/// Standard input, or a file from a byte on, in pieces; also files that are not regular, such as pipes, devices, terminals.
struct FileInput: AsyncSequence, Sendable {
    typealias Element = [UInt8]

    /// The threads for these files only: they block until a writer writes, even after their transfer has ended.
    private static let workers = BlockingThreadPool(threadLimit: 16)

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

        mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> [UInt8]? {
            let (input, opened) = (input, file)
            let result = await FileInput.workers.run {
                Result {
                    let file = try opened ?? input.path.map { try Opened($0, at: input.offset) }
                    let descriptor = file?.descriptor ?? .standardInput
                    return (file, try descriptor.bytes(atMost: 64 * 1024))
                }
            }
            let piece: [UInt8]
            (file, piece) = try result.get()
            return piece.isEmpty ? nil : piece
        }
    }

    /// The file; `nil` for standard input.
    let path: String?
    /// The first byte of the file to read.
    let offset: Int64

    init(_ path: String?, at offset: Int64 = 0) {
        self.path = path
        self.offset = offset
    }

    func makeAsyncIterator() -> Iterator { Iterator(self) }

    /// Whether a file must be read to know its length, and can be read only once.
    static func isStream(_ path: String) -> Bool {
        status(of: path).map { [S_IFIFO, S_IFCHR].contains($0.type) } ?? false
    }

    /// The status of a file; `nil` if there is none.
    static func status(of path: String) -> stat? {
        var status = stat()
        return unsafe stat(path, &status) == 0 ? status : nil
    }
}

extension stat {
    /// `S_IFREG` for a regular file.
    var type: mode_t { st_mode & S_IFMT }
}
