import MartletStorage
import MartletTransport
public import SystemPackage

/// A sink that writes the body to a file, which appears under its name when it is complete, synced, and not before.
///
/// Until then, and whatever fails, a file of that name is what it was. The file is written by a thread of its own while the
/// next bytes are received, at most 1 MiB ahead.
public actor FileSink: BodySink {
    /// The file's name.
    public nonisolated let path: FilePath
    /// Whether a file that has the name may be replaced.
    public nonisolated let overwrites: Bool
    private let opening: FileDownload
    private var writer: BodyPouring?
    private var file: FilePublisher?

    /// A sink.
    /// - Parameters:
    ///   - path: The file's name; its folder must exist.
    ///   - overwrites: Whether a file that has the name may be replaced; `false` by default.
    public init(_ path: FilePath, overwrites: Bool = false) {
        self.path = path
        self.overwrites = overwrites
        opening = FileDownload(path: path, overwrites: overwrites, origin: nil)
    }

    /// Writes a piece, or has it written while the next is received.
    /// - Throws: An ``HTTPError`` with the code `.fileFailed` or `.diskFull`.
    public func write(_ piece: [UInt8]) async throws {
        try await opened().append(piece[...])
    }

    /// Syncs the file and gives it its name.
    /// - Throws: An ``HTTPError`` with the code `.fileFailed` or `.diskFull`.
    public func finish() async throws {
        try await opened().finish()
        guard let file else { return }
        try Task.checkCancellation()
        try await opening.publish(file)
        (self.file, self.writer) = (nil, nil)
    }

    /// Removes what was written.
    public func abandon() async {
        await writer?.waitForWorker()
        if let file { await BlockingWorkers.shared.run { file.discard() } }
        (file, writer) = (nil, nil)
    }

    private func opened() async throws -> BodyPouring {
        if let writer { return writer }
        let file = try await opening.open()
        let writer = BodyPouring(file, expected: nil, origin: nil)
        (self.file, self.writer) = (file, writer)
        return writer
    }
}
