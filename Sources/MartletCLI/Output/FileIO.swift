import FoundationEssentials
import Glibc
import Martlet
import SystemPackage

/// The destination of a body: standard output, or a file that is created for its first bytes. As with curl, the written
/// bytes stay when a transfer fails.
actor BodyOutput {
    /// The file's name; `nil` for standard output.
    nonisolated let path: String?
    private let makesDirectories: Bool
    private let mayBeBinary: Bool
    private var file: FileDescriptor?
    private var hasWritten = false
    /// The proposed name that replaces ``path``. Its file must be new.
    private var proposedPath: String?
    private var appends = false
    /// The offset in the file at which the output begins.
    private var start: Int64 = 0

    /// Creates an output to standard output. Binary data is rejected on a terminal unless it is allowed.
    init(mayBeBinary: Bool) {
        (path, makesDirectories) = (nil, false)
        self.mayBeBinary = mayBeBinary || !Console.outputIsTerminal
    }

    init(path: String, makesDirectories: Bool) {
        (self.path, self.makesDirectories, mayBeBinary) = (path, makesDirectories, true)
    }

    func write(_ bytes: [UInt8]) async throws(OutputError) {
        guard !bytes.isEmpty else { return }
        guard let path else {
            if !mayBeBinary, !hasWritten, bytes.prefix(2000).contains(0) {
                throw OutputError(
                    name: "the terminal", reason: "the body is binary; “-o FILE” saves it, “-o -” prints it")
            }
            hasWritten = true
            return try await Console.write(bytes)
        }
        try await Console.write(bytes, to: try await opened(path), named: path)
    }

    /// Sets a new name for the file before it is created. A file of this name must not exist.
    func place(at path: String) { proposedPath = path }

    /// Opens the file to append to it; a missing file is created.
    func append() async throws(OutputError) {
        appends = true
        if let path { _ = try await opened(path) }
    }

    /// Whether all output so far can be discarded.
    var mayRestart: Bool {
        get async {
            guard path != nil else { return !hasWritten }
            guard let file else { return true }
            return await Console.run { (try? file.seek(offset: 0, from: .current)) != nil }
        }
    }

    /// Discards the output to a file, for another attempt. Bytes on standard output cannot be discarded.
    func restart() async throws(OutputError) {
        guard let file, let path else { return }
        try await Console.write(to: path) { [start] in
            do {
                try file.resize(to: start)
                try file.seek(offset: start, from: .start)
            } catch Errno.invalidArgument, Errno.illegalSeek {
                // The contents of a file that is not regular cannot be discarded.
            }
        }
    }

    /// Ends the output. With `makesFile`, the file exists afterwards, even if it is empty. Sets its time to `modified`,
    /// in seconds since 1970, if that is not `nil`, and returns the failure to set it, if any.
    func finish(makesFile: Bool, modified: Int64?) async throws(OutputError) -> OutputError? {
        guard let path else { return nil }
        if makesFile { _ = try await opened(path) }
        var problem: OutputError?
        if let modified, let file {
            let name = proposedPath ?? path
            problem = await Console.run { BodyOutput.setTime(modified, of: file, named: name) }
        }
        await close()
        return problem
    }

    private static func setTime(_ seconds: Int64, of file: FileDescriptor, named name: String) -> OutputError? {
        var status = stat()
        let time = timespec(tv_sec: time_t(clamping: seconds), tv_nsec: 0)
        guard unsafe fstat(file.rawValue, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            unsafe futimens(file.rawValue, [time, time]) != 0
        else { return nil }
        return OutputError(name: name, Errno(rawValue: errno))
    }

    func close() async {
        guard let open = file.take() else { return }
        await Console.run { _ = try? open.close() }
    }

    private func opened(_ path: String) async throws(OutputError) -> FileDescriptor {
        if let file { return file }
        let path = proposedPath ?? path
        let mode: FileDescriptor.OpenOptions =
            appends ? .append : proposedPath == nil ? .truncate : .exclusiveCreate
        let (opened, end) = try await Console.write(to: path) { [makesDirectories] in
            let file = try FileDescriptor.output(path, mode, makesDirectories: makesDirectories)
            // A file that is not regular has no end to append at.
            return (file, mode == .append ? (try? file.seek(offset: 0, from: .end)) ?? 0 : 0)
        }
        (file, start) = (opened, end)
        return opened
    }
}

extension FileDescriptor {
    /// Creates a directory and its missing parents. Blocks.
    static func createDirectories(_ path: String) throws {
        do { try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true) } catch {
            // The system's error is more readable than its wrapper.
            let code = ((error as? CocoaError)?.underlying as? POSIXError)?.code
            throw code.map { Errno(rawValue: $0.rawValue) } ?? error
        }
    }

    /// Opens a file for writing. Creates it if it is missing; with `makesDirectories`, its parents, too. Blocks.
    static func output(_ path: String, _ mode: OpenOptions, makesDirectories: Bool = false) throws -> FileDescriptor {
        let parent = FilePath(path).removingLastComponent().string
        if makesDirectories, !parent.isEmpty { try createDirectories(parent) }
        return try open(
            FilePath(path), .writeOnly, options: [.create, mode, .closeOnExec],
            permissions: [.ownerReadWrite, .groupRead, .otherRead])
    }
}

/// The bytes of standard input, or of a file from an offset on, in pieces. The file may be a pipe, a device or a
/// terminal.
struct FileInput: AsyncSequence, Sendable {
    typealias Element = [UInt8]

    /// Separate threads, because a read blocks until a writer writes, even after the transfer has ended.
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
    let offset: Int64

    init(_ path: String?, at offset: Int64 = 0) { (self.path, self.offset) = (path, offset) }

    func makeAsyncIterator() -> Iterator { Iterator(self) }

    /// Whether a file must be read to know its length, and can be read only once.
    static func isStream(_ path: String) -> Bool {
        status(of: path).map { [S_IFIFO, S_IFCHR].contains($0.type) } ?? false
    }

    /// The status of a file; `nil` if it does not exist or is not accessible.
    static func status(of path: String) -> stat? {
        var status = stat()
        return unsafe stat(path, &status) == 0 ? status : nil
    }
}

extension stat {
    /// The type of the file, such as `S_IFREG` for a regular file.
    var type: mode_t { st_mode & S_IFMT }
}
