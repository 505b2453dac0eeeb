/// A download of a body to a temporary file, which is renamed to its final name when it is complete.
package struct FileDownload: Sendable {
    let path: FilePath
    let overwrites: Bool
    /// The call whose response is written, for errors.
    let call: Call?

    package init(path: FilePath, overwrites: Bool, call: Call?) {
        (self.path, self.overwrites, self.call) = (path, overwrites, call)
    }

    /// Writes the whole body. If a step fails, the temporary file is removed, unless only the rename failed.
    /// - Parameter beginning: The part of the body that was already read.
    func write(_ reader: BodyReader, after beginning: ArraySlice<UInt8> = []) async throws {
        guard !reader.hasLostBytes else {
            throw reader.rejection(
                .truncated, "an earlier read or write lost bytes of the body, so the file would be incomplete")
        }
        let file = try await open()
        reader.beginWriting()
        let expected = reader.expectedByteCount.map { max($0, UInt64(beginning.count)) }
        let copier = BodyCopier(file, expected: expected, call: call)
        do {
            try await copier.append(beginning)
            try await copier.copy(reader)
            try await copier.finish()
            try Task.checkCancellation()
            try await publish(file)
        } catch {
            reader.loseBytes()
            await copier.waitForWorker()
            await BlockingThreadPool.shared.run { file.discard() }
            throw error
        }
    }

    /// Writes a body that is in memory.
    func write(_ bytes: [UInt8]) async throws {
        let (name, collision) = (path.string, collision)
        try await blocking { () throws(StorageError) in
            let file = try AtomicFileWriter(path: name, collision: collision)
            do throws(StorageError) {
                try file.write(bytes)
                try file.publish(collision: collision)
            } catch {
                file.discard()
                throw error
            }
        }
    }

    /// Whether a file with the name exists. A file that appears later is detected by ``open()`` and ``publish(_:)``.
    static func isTaken(_ path: FilePath) async -> Bool {
        let name = path.string
        return await BlockingThreadPool.shared.run { (try? LinuxFileSystem().status(at: name)) != nil }
    }

    /// Returns the message of the error that a file already exists.
    static func existing(_ path: FilePath) -> String {
        "\(path) already exists; choose another name, or allow overwriting"
    }

    private var collision: AtomicFileWriter.Collision { overwrites ? .replace : .fail }

    /// Creates the temporary file, next to the final name.
    package func open() async throws(HTTPError) -> AtomicFileWriter {
        let (name, collision) = (path.string, collision)
        return try await blocking { () throws(StorageError) in try AtomicFileWriter(path: name, collision: collision) }
    }

    /// Syncs the file and renames it to its final name. If only the rename fails, the temporary file is kept.
    package func publish(_ file: AtomicFileWriter) async throws(HTTPError) {
        let collision = collision
        do throws(HTTPError) {
            try await blocking { () throws(StorageError) in try file.publish(collision: collision) }
        } catch {
            guard let storageError = error.underlying as? StorageError,
                ["rename", "link"].contains(storageError.operation)
            else { throw error }
            let kept = await BlockingThreadPool.shared.run { file.keep() }
            var failure = error
            failure.unpublishedFile = FilePath(kept)
            failure.message += "; the received bytes are stored in \(kept)"
            throw failure
        }
    }

    private func blocking<Value: Sendable>(_ body: @escaping @Sendable () throws(StorageError) -> Value)
        async throws(HTTPError) -> Value
    {
        do throws(StorageError) { return try await BlockingThreadPool.shared.run(throwing: body) } catch {
            var failure = HTTPError(storage: error, method: call?.method, url: call?.url)
            if error.isExistingFile { (failure.code, failure.message) = (.fileExists, FileDownload.existing(path)) }
            throw failure
        }
    }
}

/// The destination of a body that becomes a download.
struct DownloadDestination: Hashable, Sendable {
    var path: FilePath
    /// Whether an existing file may be replaced.
    var overwrites: Bool
}

extension StreamedResponse {
    /// Writes `taken`, the part of the body that was already read, and then the rest to a file, without a size limit.
    ///
    /// If the file cannot be created, no byte is lost: the body can be collected, within the limit of bodies in memory.
    func write(_ reader: BodyReader, after taken: [UInt8], to destination: DownloadDestination) async throws {
        let limit = reader.byteLimit
        reader.byteLimit = nil
        let download = FileDownload(path: destination.path, overwrites: destination.overwrites, call: call)
        do { try await download.write(reader, after: taken[...]) } catch {
            if !reader.hasLostBytes { reader.byteLimit = limit }
            throw error
        }
        await call.observer?.downloadFinished(at: destination.path)
    }
}
