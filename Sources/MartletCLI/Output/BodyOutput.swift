import FoundationEssentials
import Glibc
import SystemPackage

/// Where a body goes: standard output, or a file that is made when its first bytes come.
///
/// What was written stays when a transfer fails, as with curl.
actor BodyOutput {
    /// The file's name; `nil` for standard output.
    nonisolated let path: String?
    private let makesFolders: Bool
    private let mayBeBinary: Bool
    private var file: FileDescriptor?
    private var hasWritten = false
    /// The name in place of ``path``, where one was proposed.
    private var proposedPath: String?
    private var mayReplace = true
    private var appends = false
    /// Where in the file the output begins.
    private var start: Int64 = 0

    /// Standard output. Binary data are refused on a terminal unless they may be there.
    init(mayBeBinary: Bool) {
        path = nil
        makesFolders = false
        self.mayBeBinary = mayBeBinary || !Console.outputIsTerminal
    }

    /// A file.
    init(path: String, makesFolders: Bool) {
        self.path = path
        self.makesFolders = makesFolders
        mayBeBinary = true
    }

    /// Writes bytes, of a body or of a head.
    func write(_ bytes: [UInt8]) async throws(OutputError) {
        guard !bytes.isEmpty else { return }
        guard let path else {
            if !mayBeBinary, !hasWritten, bytes.prefix(2000).contains(0) {
                throw OutputError(
                    name: "the terminal",
                    reason: "the body is binary; “-o -” writes it all the same, “-o FILE” saves it")
            }
            hasWritten = true
            try await Console.write(bytes)
            return
        }
        try await Console.write(bytes, to: try await opened(path), named: path)
    }

    /// Has a file that is not there yet be made under another name.
    /// - Parameter mayReplace: Whether it may take the place of one that has the name.
    func place(at path: String, mayReplace: Bool) {
        proposedPath = path
        self.mayReplace = mayReplace
    }

    /// Opens the file to write after what it has; a file that is missing is created.
    func append() async throws(OutputError) {
        appends = true
        if let path { _ = try await opened(path) }
    }

    /// Whether nothing was written that cannot be taken back.
    var mayRestart: Bool {
        get async {
            guard path != nil else { return !hasWritten }
            guard let file else { return true }
            return await Console.run { (try? file.seek(offset: 0, from: .current)) != nil }
        }
    }

    /// Takes back what was written to a file, for another try; what was shown stays.
    func restart() async throws(OutputError) {
        guard let file, let path else { return }
        let start = start
        try await Console.write(to: path) {
            do {
                try file.resize(to: start)
                try file.seek(offset: start, from: .start)
            } catch Errno.invalidArgument, Errno.illegalSeek {
                // No plain file: what went in cannot be had back.
            }
        }
    }

    /// Ends the output: a file is there from now on, be it empty.
    /// - Parameters:
    ///   - makesFile: Whether that holds also where nothing was written; else what was there stays.
    ///   - modified: The time that a file gets, in seconds since 1970; `nil` for the present.
    /// - Returns: Why it could not get it, where that is so.
    @discardableResult
    func finish(makesFile: Bool = true, modified: Int64? = nil) async throws(OutputError) -> OutputError? {
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

    /// Sets the time of a plain file.
    private static func setTime(_ seconds: Int64, of file: FileDescriptor, named name: String) -> OutputError?
    {
        var status = stat()
        guard unsafe fstat(file.rawValue, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            return nil
        }
        let time = timespec(tv_sec: time_t(clamping: seconds), tv_nsec: 0)
        guard unsafe futimens(file.rawValue, [time, time]) != 0 else { return nil }
        return OutputError(name: name, Errno(rawValue: errno))
    }

    /// Ends the output as it is.
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
            // What is no plain file has no end to begin at.
            return (file, mode == .append ? (try? file.seek(offset: 0, from: .end)) ?? 0 : 0)
        }
        (file, start) = (opened, end)
        return opened
    }
}

extension FileDescriptor {
    /// Opens a file to be written, which is made where it is missing. Blocks.
    /// - Parameter makesFolders: Whether the folders above it are made, too.
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
