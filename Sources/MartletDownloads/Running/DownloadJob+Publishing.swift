import MartletCore
import Synchronization

extension DownloadJob {
    /// A complete file that has its name, in a directory that could not be synced.
    struct UnsyncedName: Error { let error: HTTPError }

    /// Gives the complete file its name.
    /// - Parameters:
    ///   - result: The result; its path is the requested name.
    ///   - modified: `Last-Modified`, in seconds since 1970.
    ///   - onPublication: Writes the record of the complete file, before the file gets its name.
    /// - Returns: The result with the name that the file got.
    /// - Throws: An `HTTPError`; ``UnsyncedName`` if a power cut may undo the rename; `CancellationError`.
    func publish(_ part: PartFile, _ result: DownloadResult, modified: Int64?, onPublication: PublicationHandler?)
        async throws -> DownloadResult
    {
        let collision = plan.options.collision
        var publication: PublicationRecord
        var name: PublishedName?
        if let onPublication {
            publication = try await step(part) { () throws(StorageError) in
                try self.seal(part, result, modified: modified)
            }
            try await note(publication, onPublication)
            name = try await step(part) { () throws(StorageError) in try part.publish(collision) }
        } else {
            // In one step, because nothing has to be recorded in between.
            (publication, name) = try await step(part) { () throws(StorageError) in
                try self.publishAtOnce(part, result, modified: modified)
            }
        }
        if name == nil {
            publication.copy = try await step(part) { () throws(StorageError) in
                try part.copy(total: result.byteCount, modified: self.kept(modified))
            }
            state.withLock { $0.publication = publication }
            do { if let onPublication { try await note(publication, onPublication) } } catch {
                await BlockingThreadPool.shared.run { part.removeCopy() }
                throw error
            }
            name = try await step(part) { () throws(StorageError) in try part.publishCopy(collision) }
        }
        guard let name else { return result }
        return try take(name, result)
    }

    /// Gives the complete file its name in one step, if nothing has to be recorded before. Blocks.
    /// - Returns: The record, and the name; a `nil` name if the file cannot be renamed, but perhaps copied.
    func publishAtOnce(_ part: PartFile, _ result: DownloadResult, modified: Int64?) throws(StorageError) -> (
        publication: PublicationRecord, name: PublishedName?
    ) {
        let publication = try seal(part, result, modified: modified)
        return (publication, try part.publish(plan.options.collision))
    }

    /// Returns the time of `Last-Modified` if the options preserve it.
    private func kept(_ modified: Int64?) -> Int64? { plan.options.preservesModificationTime ? modified : nil }

    /// Checks whether the file of an earlier run got its name, and completes the steps that follow.
    /// - Returns: The result; `nil` if the file did not get its name.
    /// - Throws: An `HTTPError`.
    func complete(_ publication: PublicationRecord) async throws -> DownloadResult? {
        let (files, collision) = (files, plan.options.collision)
        let found: PublishedName?
        do throws(StorageError) {
            found = try await BlockingThreadPool.shared.run { () throws(StorageError) in
                try publication.complete(collision, files: files)
            }
        } catch { throw failure(error) }
        guard let name = found else { return nil }
        let result: DownloadResult
        do { result = try take(name, publication.result) } catch let unsynced as UnsyncedName { throw unsynced.error }
        report(.started(resumedByteCount: result.byteCount), total: result.byteCount)
        return shown(result)
    }

    /// Publishes the progress of a complete file that this run did not fetch.
    func shown(_ result: DownloadResult) -> DownloadResult {
        status.updateProgress {
            var progress = DownloadProgress()
            progress.complete(result.byteCount)
            progress.resumedByteCount = result.resumedByteCount
            progress.isFinished = true
            return progress
        }
        return result
    }

    /// Completes the file except for its name. Blocks.
    /// - Returns: The record of the file.
    private func seal(_ part: PartFile, _ result: DownloadResult, modified: Int64?) throws(StorageError)
        -> PublicationRecord
    {
        var later = result
        // For a later run that finds the file, all bytes are those of an earlier run.
        (later.resumedByteCount, later.receivedByteCount) = (result.byteCount, 0)
        let mark = try part.seal(total: result.byteCount, modified: kept(modified))
        let publication = PublicationRecord(result: later, part: mark)
        state.withLock { $0.publication = publication }
        return publication
    }

    private func note(_ publication: PublicationRecord, _ onPublication: PublicationHandler) async throws {
        try await onPublication(publication)
        // The run may have been stopped since.
        try Task.checkCancellation()
    }

    /// Records the name that the file got.
    /// - Returns: The result with that name.
    /// - Throws: ``UnsyncedName`` if the name may not survive a power cut.
    func take(_ name: PublishedName, _ result: DownloadResult) throws -> DownloadResult {
        state.withLock { state in
            state.target = name.path
            if name.syncError == nil { state.publication = nil }
        }
        if let syncError = name.syncError {
            var error = failure(syncError)
            error.message =
                "\(name.path): the file is complete, but may be lost after a power cut: its directory could not be"
                + " synced: \(syncError)"
            error.unpublishedFile = FilePath(name.path)
            error.resumableByteCount = result.byteCount
            throw UnsyncedName(error: error)
        }
        var published = result
        // The comparison is faster than the conversion, and most files get the requested name.
        if result.path.string != name.path { published.path = FilePath(name.path) }
        return published
    }

    private func failure(_ error: StorageError) -> HTTPError {
        var failure = HTTPError(storage: error, method: .get, url: url)
        failure.phase = .processingResponse
        if error.isExistingFile { failure.code = .fileExists }
        return failure
    }

    /// Performs one step on a worker.
    private func step<Value: Sendable>(_ part: PartFile, _ body: @escaping @Sendable () throws(StorageError) -> Value)
        async throws -> Value
    {
        do throws(StorageError) { return try await BlockingThreadPool.disk.run(throwing: body) } catch {
            var failure = failure(error)
            failure.unpublishedFile = FilePath(part.names.part)
            if failure.code == .fileExists { await BlockingThreadPool.shared.run { self.skip(part.names.target) } }
            throw failure
        }
    }
}
