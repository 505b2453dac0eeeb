import MartletCaching
import MartletCore
import MartletStreams
import MartletStorage
import MartletTransport
import Synchronization
import SystemPackage

extension DownloadJob {
    /// A complete file that has its name, in a folder that could not be synced.
    struct UnsyncedName: Error { let error: HTTPError }

    /// Gives the complete file its name.
    /// - Parameters:
    ///   - part: The file.
    ///   - result: What there is to tell of it; its path is the name it is to get.
    ///   - modified: When it was written last on the server, in seconds since 1970.
    ///   - noting: Told before it gets the name.
    /// - Returns: The result, with the name it got.
    /// - Throws: An `HTTPError` where it has no name; ``UnsyncedName`` where it has one that may not last; `CancellationError`;
    ///   what `noting` throws.
    func publish(
        _ part: PartFile, _ result: DownloadResult, modified: Int64?, noting: Noting?
    ) async throws -> DownloadResult {
        let (total, collision) = (result.byteCount, plan.options.collision)
        let modified = kept(modified)
        var publication: DownloadPublication
        var name: PublishedName?
        if let noting {
            publication = try await step(part) { () throws(StorageError) in
                try self.seal(part, result, modified: modified)
            }
            try await note(publication, noting)
            name = try await step(part) { () throws(StorageError) in try part.publish(collision) }
        } else {
            // Nobody is to be waited for in between.
            (publication, name) = try await step(part) { () throws(StorageError) in
                try self.sealAndPublish(part, result, modified: modified)
            }
        }
        if name == nil {
            publication.copy = try await step(part) { () throws(StorageError) in
                try part.copy(total: total, modified: modified)
            }
            state.withLock { $0.publication = publication }
            do {
                if let noting { try await note(publication, noting) }
            } catch {
                await BlockingWorkers.shared.run { part.removeCopy() }
                throw error
            }
            name = try await step(part) { () throws(StorageError) in try part.publishCopy(collision) }
        }
        guard let name else { return result }
        return try take(name, result)
    }

    /// Gives the complete file its name at once, where nobody is to be told before. It blocks.
    /// - Returns: The name it got; nil where it cannot be moved there, though a copy may.
    func publishAtOnce(
        _ part: PartFile, _ result: DownloadResult, modified: Int64?
    ) throws(StorageError) -> PublishedName? {
        try sealAndPublish(part, result, modified: kept(modified)).name
    }

    private func sealAndPublish(
        _ part: PartFile, _ result: DownloadResult, modified: Int64?
    ) throws(StorageError) -> (publication: DownloadPublication, name: PublishedName?) {
        let publication = try seal(part, result, modified: modified)
        return (publication, try part.publish(plan.options.collision))
    }

    /// Takes up the name that the file got.
    /// - Returns: The result, with that name.
    /// - Throws: ``UnsyncedName`` where it may not last.
    func take(_ name: PublishedName, _ result: DownloadResult) throws -> DownloadResult {
        var published = result
        published.path = try settle(name, result.byteCount)
        return published
    }

    /// When the file was written last, where it is to have that time.
    private func kept(_ modified: Int64?) -> Int64? { plan.options.keepsRemoteTime ? modified : nil }

    /// Finds out whether the file of an earlier run got its name, and does what that run left to be done.
    /// - Returns: What is to be told of it; nil where it did not get its name.
    /// - Throws: An `HTTPError`.
    func complete(_ publication: DownloadPublication) async throws -> DownloadResult? {
        let (files, collision) = (files, plan.options.collision)
        let found: PublishedName?
        do throws(StorageError) {
            found = try await BlockingWorkers.shared.run { () throws(StorageError) in
                try publication.complete(collision, files: files)
            }
        } catch {
            throw failure(error)
        }
        guard let name = found else { return nil }
        var result = publication.result
        do {
            result.path = try settle(name, result.byteCount)
        } catch let unsynced as UnsyncedName {
            throw unsynced.error
        }
        let byteCount = result.byteCount
        status.events.add(.started(resumedByteCount: byteCount))
        status.progress.update {
            var progress = DownloadProgress()
            progress.completedByteCount = byteCount
            progress.totalByteCount = byteCount
            progress.resumedByteCount = byteCount
            progress.isFinished = true
            return progress
        }
        return result
    }

    /// Makes the file ready to get its name. It blocks.
    /// - Returns: By what it will be known.
    private func seal(
        _ part: PartFile, _ result: DownloadResult, modified: Int64?
    ) throws(StorageError) -> DownloadPublication {
        var later = result
        // What a run tells that finds it: all of it was there before.
        (later.resumedByteCount, later.receivedByteCount) = (result.byteCount, 0)
        let mark = try part.seal(total: result.byteCount, modified: modified)
        let publication = DownloadPublication(result: later, part: mark)
        state.withLock { $0.publication = publication }
        return publication
    }

    private func note(_ publication: DownloadPublication, _ noting: Noting) async throws {
        try await noting(publication)
        // Whoever was to be told may have been waited for, and the run been stopped meanwhile.
        try Task.checkCancellation()
    }

    /// Takes up the name that the file has.
    private func settle(_ name: PublishedName, _ total: UInt64) throws -> FilePath {
        state.withLock { state in
            state.target = name.path
            if name.fault == nil { state.publication = nil }
        }
        guard let fault = name.fault else { return FilePath(name.path) }
        var error = failure(fault)
        error.message =
            "\(name.path): the file is complete, and may be gone after a power cut, since its folder could not be"
            + " synced: \(fault)"
        error.keptFile = FilePath(name.path)
        error.keptByteCount = total
        throw UnsyncedName(error: error)
    }

    private func failure(_ error: StorageError) -> HTTPError {
        var failure = HTTPError(storage: error, origin: url.origin.description)
        failure.phase = .evaluating
        if error.isExistingFile { failure.code = .fileExists }
        return failure
    }

    /// Does one step on a worker.
    private func step<Value: Sendable>(
        _ part: PartFile, _ body: @escaping @Sendable () throws(StorageError) -> Value
    ) async throws -> Value {
        do throws(StorageError) {
            return try await BlockingWorkers.disk.run(throwing: body)
        } catch {
            var failure = failure(error)
            failure.keptFile = FilePath(part.names.part)
            throw failure
        }
    }
}
