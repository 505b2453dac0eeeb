import FoundationEssentials
import Glibc
import SystemPackage

/// The destination of a body: standard output, or a file that is created when its first bytes come.
///
/// As with curl, the written bytes stay when a transfer fails.
actor BodyOutput {
    /// The file's name; `nil` for standard output.
    nonisolated let path: String?
    private let makesFolders: Bool
    private let mayBeBinary: Bool
    private var file: FileDescriptor?
    private var hasWritten = false
    /// The name proposed in place of ``path``.
    private var proposedPath: String?
    private var mayReplace = true
    private var appends = false
    /// The offset in the file at which the output begins.
    private var start: Int64 = 0

    /// Standard output. Binary data is rejected on a terminal unless it may be there.
    init(mayBeBinary: Bool) {
        path = nil
        makesFolders = false
        self.mayBeBinary = mayBeBinary || !Console.outputIsTerminal
    }

    init(path: String, makesFolders: Bool) {
        self.path = path
        self.makesFolders = makesFolders
        mayBeBinary = true
    }

    func write(_ bytes: [UInt8]) async throws(OutputError) {
        guard !bytes.isEmpty else { return }
        guard let path else {
            if !mayBeBinary, !hasWritten, bytes.prefix(2000).contains(0) {
                throw OutputError(
                    name: "the terminal",
                    reason: "the body is binary; “-o -” writes it all the same, “-o FILE” saves it")
            }
            hasWritten = true
            return try await Console.write(bytes)
        }
        try await Console.write(bytes, to: try await opened(path), named: path)
    }

    /// Changes the name of a file that is not created yet.
    /// - Parameter mayReplace: Whether an existing file of that name may be replaced.
    func place(at path: String, mayReplace: Bool) {
        proposedPath = path
        self.mayReplace = mayReplace
    }

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

    /// Discards the output to a file, for another attempt. Standard output stays.
    func restart() async throws(OutputError) {
        guard let file, let path else { return }
        let start = start
        try await Console.write(to: path) {
            do {
                try file.resize(to: start)
                try file.seek(offset: start, from: .start)
            } catch Errno.invalidArgument, Errno.illegalSeek {
                // Not a regular file: its contents cannot be discarded.
            }
        }
    }

    /// Ends the output: the file exists afterwards.
    /// - Parameters:
    ///   - makesFile: Whether an empty output creates a file; otherwise an existing file stays as it is.
    ///   - modified: The modification time for the file, in seconds since 1970; `nil` for the present.
    /// - Returns: The failure to set the time, if any.
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

    /// Sets the modification time of a regular file.
    private static func setTime(_ seconds: Int64, of file: FileDescriptor, named name: String) -> OutputError?
    {
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
        let makesFolders = makesFolders
        let mode: FileDescriptor.OpenOptions = appends ? .append : mayReplace ? .truncate : .exclusiveCreate
        let (opened, end) = try await Console.write(to: path) {
            let file = try FileDescriptor.output(path, mode, makesFolders: makesFolders)
            // A file that is not regular has no end to begin at.
            return (file, mode == .append ? (try? file.seek(offset: 0, from: .end)) ?? 0 : 0)
        }
        (file, start) = (opened, end)
        return opened
    }
}

extension FileDescriptor {
    /// Opens a file for writing, and creates it if it is missing. Blocks.
    /// - Parameter makesFolders: Whether missing parent directories are created.
    static func output(
        _ path: String, _ mode: OpenOptions, makesFolders: Bool = false
    ) throws -> FileDescriptor {
        let parent = FilePath(path).removingLastComponent().string
        if makesFolders, !parent.isEmpty {
            try FileManager.default.createDirectory(atPath: parent, withIntermediateDirectories: true)
        }
        return try open(
            FilePath(path), .writeOnly, options: [.create, mode, .closeOnExec],
            permissions: [.ownerReadWrite, .groupRead, .otherRead])
    }
}
