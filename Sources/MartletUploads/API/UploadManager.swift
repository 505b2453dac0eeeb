public import MartletCore
import MartletDownloads

/// A manager of uploads of files that outlive the process and resume where the server supports it.
///
/// The uploads are recorded in a directory: the next manager that opens it resumes the unfinished ones. Only one
/// manager in any process can have the directory open. ``close()`` releases it, and so does the end of the process.
///
/// ```swift
/// let uploads = try await UploadManager(session: session, directory: "/var/lib/app/uploads")
/// let id = try await uploads.add("/data/movie.mp4", to: "https://example.org/files")
/// let result = try await uploads.value(of: id)
/// ```
///
/// The guarantees, even if the process is killed at any moment:
///
/// - The record of an upload is on disk before its first byte is sent, and the upload URL before the first byte of a
///   resumable upload (``UploadProtocol/ietf``, ``UploadProtocol/tus``). Only bytes that the server acknowledged count:
///   after a failure the server is asked for the offset, and only the bytes in transit are sent again.
/// - A request that may have taken effect is not repeated, unless that is allowed
///   (``UploadOptions/allowsRepetition``). The upload then fails with the code `uploadUncertain`.
/// - A file whose length, modification time or identity changes while it is uploaded fails with the code
///   `uploadFileChanged`. The bytes of two versions are never mixed.
///
/// | response | result |
/// |---|---|
/// | no response, 408, 423, 425, 429, 500, 502, 503, 504 | a retry after `Retry-After`, at most `maximumRetryAfter`; then the offset |
/// | 409, or 460 (tus) to content | the offset |
/// | 404 or 410 from the upload URL | the upload is created again, from the start of the file |
/// | 413 with a smaller `max-append-size` | smaller requests |
/// | other 4xx, 5xx and 3xx | failed |
///
/// Credentials are not written: user names and passwords of URLs, `Authorization`, `Proxy-Authorization`, `Cookie`,
/// `Set-Cookie` and ``UploadOptions/secretFields``. The manager holds them in memory; the closure `prepare` of the
/// initializer can add them to each request, in each process. The upload URL is written, and readable only by the owner
/// of the directory. The total timeout of the session does not apply; its bandwidth limits do.
///
/// Releasing the manager and all handles stops the uploads like ``close()``, but without waiting.
public actor UploadManager {
    /// A file of the directory that is not a readable upload.
    public struct Finding: Hashable, Sendable {
        /// The path of the file.
        public var path: FilePath
        /// The reason why it cannot be read.
        public var reason: String
        /// Whether the file is damaged, and was moved to this path in the directory `corrupt`. Otherwise it was left in
        /// place: a newer version of Martlet wrote it, or it cannot be read now.
        public var isMoved = false
    }

    /// An upload in this process.
    struct Managed {
        var item: UploadItem
        let status: UploadStatus
        var run: Task<UploadResult, any Error>?
        /// Becomes true when the end of the run was handled.
        var isSettled = CurrentValue(true)
        /// The number of the run, and of its latest checkpoint.
        var runNumber: UInt64 = 0
        var recordNumber: UInt64 = 0
        /// Whether a write of the record has not finished, or the last one failed.
        var isUnsaved = false
    }

    /// Files of the directory that are not readable uploads, found when it was opened.
    public nonisolated let findings: [Finding]
    let session: HTTPSession
    let directory: FilePath
    let store: QueueStore<UploadItem>
    let prepare: (@Sendable (inout HTTPHeaders, HTTPURL) async throws -> Void)?
    let now: @Sendable () -> MonotonicTime
    nonisolated let runs = RunGroup()
    nonisolated let isClosed = CurrentValue(false)
    nonisolated let isAllFinished = CurrentValue(true)
    /// The progress of each upload.
    nonisolated let progressByUpload = CurrentValue<[UploadID: UploadProgress]>([:])
    /// The order and the states of uploads follow the rules of downloads.
    var machine: DownloadQueueMachine
    var managed: [UploadID: Managed] = [:]
    var lastNumber: UInt64
    var lastOrder: UInt64
    var isClosing = false

    /// Opens a directory of uploads, and resumes the unfinished ones.
    /// - Parameters:
    ///   - session: The session that sends the requests.
    ///   - directory: The directory; created with its parents if missing. Only its owner may write to it.
    ///   - limits: The limits on concurrent uploads.
    ///   - prepare: Called before each request with its fields and its URL, which may be an upload URL of another
    ///     origin. It adds fields that are not stored, such as `Authorization`. They are not sent to another origin
    ///     after a redirect, except those about the content, `Accept`, `Accept-Language`, `Accept-Encoding` and
    ///     `User-Agent`. An error fails the upload.
    /// - Throws: An `HTTPError`: `.alreadyInProgress` if a manager of any process has the directory; `.fileFailed` if
    ///   another user owns it, others may write to it, or it cannot be used.
    public init(
        session: HTTPSession, directory: some FilePathConvertible, limits: UploadLimits = UploadLimits(),
        prepare: (@Sendable (inout HTTPHeaders, HTTPURL) async throws -> Void)? = nil
    ) async throws {
        try await self.init(
            session: session, directory: directory.filePath, limits: limits, files: LinuxFileSystem(), prepare: prepare)
    }

    /// Opens a directory with another file system or clock.
    init(
        session: HTTPSession, directory: FilePath, limits: UploadLimits, files: any FileSystem,
        now: @escaping @Sendable () -> MonotonicTime = { MonotonicTime.now() },
        prepare: (@Sendable (inout HTTPHeaders, HTTPURL) async throws -> Void)? = nil
    ) async throws {
        let (store, contents) = try await QueueStore<UploadItem>.open(directory.string, files: files)
        // The decisions depend on the original errors, not on their replacements by an error mapper.
        self.session = session.forUploads
        (self.directory, self.store, self.prepare, self.now) = (directory, store, prepare, now)
        machine = DownloadQueueMachine(limits: DownloadLimits(limits))
        findings = contents.findings.map { Finding(path: $0.path, reason: $0.reason, isMoved: $0.isMoved) }
        lastNumber = contents.lastNumber
        lastOrder = contents.items.last?.order ?? 0
        restore(contents.items)
    }

    deinit {
        runs.cancel()
        for entry in managed.values { entry.status.end() }
        end()
    }

    // MARK: Inspection

    /// All uploads in the order of their addition, including those of earlier processes, and those that have ended and
    /// were not removed.
    public var uploads: [Upload] { managed.keys.sorted().compactMap { upload($0) } }

    /// Returns a handle of an upload; `nil` for an unknown or cancelled upload.
    public func upload(_ id: UploadID) -> Upload? {
        guard let entry = managed[id], machine.phase(of: id.queued) != .removing else { return nil }
        return Upload(
            id: id, file: FilePath(entry.item.path), url: entry.item.url.withoutUserInfo, status: entry.status,
            manager: self)
    }

    /// Returns the states of an upload (``Upload/states``); for an unknown upload only `.cancelled`.
    public func states(of id: UploadID) -> LatestValues<UploadState> { LatestValues(status(of: id).states) { $0 } }

    /// Returns the progress of an upload (``Upload/progress``); for an unknown upload one value without bytes.
    public func progress(of id: UploadID) -> LatestValues<UploadProgress> {
        LatestValues(status(of: id).progress) { $0 }
    }

    /// Waits for the result of an upload, like ``Upload/value``.
    /// - Throws: The errors of ``Upload/value``; `HTTPError` with the code `.invalidRequest` for an unknown upload.
    public func value(of id: UploadID) async throws -> UploadResult {
        guard let upload = upload(id) else { throw unknown(id) }
        return try await upload.value
    }

    private func status(of id: UploadID) -> UploadStatus {
        if let status = managed[id]?.status { return status }
        let status = UploadStatus(.cancelled, UploadProgress())
        status.end()
        return status
    }

    /// The progress of all uploads together, also of finished ones that were not removed: the current value first, then
    /// newer ones. A slow consumer skips values.
    public nonisolated var progress: LatestValues<UploadProgress> {
        LatestValues(progressByUpload) { UploadProgress.total(of: $0.values) }
    }

    /// Waits until every upload is finished, failed or cancelled. It also waits for paused uploads.
    /// - Throws: `CancellationError` if the task is cancelled or the manager is closed first.
    public nonisolated var allFinished: Void {
        get async throws { guard await isAllFinished.becomesTrue() else { throw CancellationError() } }
    }

    // MARK: Commands

    /// Adds a file to the queue. When this returns, the upload survives the process; after an error nothing is stored.
    ///
    /// The file is not copied. It must stay unchanged until the upload has finished. Adding a file twice uploads it
    /// twice.
    /// - Parameters:
    ///   - file: The path of a regular file; a relative one is resolved against the working directory.
    ///   - target: The URL, or a request. Its method replaces that of the options; fields of the options replace its
    ///     fields of the same name.
    ///   - options: The options.
    /// - Returns: The identifier, stable across processes.
    /// - Throws: An `HTTPError`: `.invalidURL`; `.invalidHeader`; `.fileFailed` if the file cannot be read, or the
    ///   record cannot be written; `.diskFull`; `.uploadManagerClosed`; `CancellationError`.
    @discardableResult public func add(
        _ file: some FilePathConvertible, to target: some HTTPTarget, options: UploadOptions = UploadOptions()
    ) async throws -> UploadID {
        try checkOpen()
        var item = try await UploadItem(file.filePath, target, options, session)
        try Task.checkCancellation()
        try checkOpen()
        guard lastNumber < .max, lastOrder < .max else {
            throw HTTPError(.fileFailed, phase: .preparing, message: "all upload numbers are used")
        }
        lastNumber += 1
        lastOrder += 1
        (item.id, item.order) = (UploadID(lastNumber), lastOrder)
        try await store.add(item)
        // The next manager of the directory sends an upload that was stored while this one was closed.
        guard !isClosing else { return item.id }
        manage(item, .waiting)
        apply(machine.add([arrival(item, .waiting)], now: now()))
        return item.id
    }

    /// Stops an upload and closes its connection. It stays paused in later processes. Has no effect on an upload that
    /// is over. Cancelling the task ends only the wait.
    public func pause(_ id: UploadID) async {
        guard !isClosing else { return }
        let isWaiting = machine.phase(of: id.queued) == .waiting
        let (paused, effects) = machine.pause([id.queued], now: now())
        if isWaiting { managed[id]?.status.become(.paused) }
        apply(effects)
        guard !paused.isEmpty, let isSettled = managed[id]?.isSettled else { return }
        try? await save(id)
        await isSettled.becomesTrue()
    }

    /// Resumes a paused or failed upload at the end of the queue. Has no effect on one that waits or runs.
    ///
    /// Resuming allows one repetition of a request that may have taken effect. If the file changed, the new file is
    /// sent from its start.
    /// - Throws: An `HTTPError`: `.invalidRequest` if the upload is finished, was cancelled or is unknown;
    ///   `.fileFailed` if the file or the record fails; `.uploadManagerClosed`.
    public func resume(_ id: UploadID) async throws {
        try checkOpen()
        guard let entry = managed[id] else { throw unknown(id) }
        var identity: UploadFileIdentity?
        if case .failed(let error) = entry.status.states.value, error.code == .uploadFileChanged {
            identity = try await UploadFileIdentity.of(entry.item.path)
            try checkOpen()
        }
        let old = machine.phase(of: id.queued)
        guard let effects = machine.resume(id.queued, now: now()) else {
            throw HTTPError(.invalidRequest, phase: .preparing, message: "upload \(id) is finished, or being cancelled")
        }
        if old == .paused || old == .failed {
            lastOrder = lastOrder == .max ? .max : lastOrder + 1
            managed[id]?.item.order = lastOrder
            managed[id]?.item.checkpoint.mayBeComplete = false
            if let identity, identity != entry.item.file {
                managed[id]?.item.file = identity
                managed[id]?.item.checkpoint = UploadMachine.Checkpoint()
            }
            entry.status.become(.waiting)
        }
        let isChanged = machine.phase(of: id.queued) != old
        apply(effects)
        if isChanged || entry.isUnsaved { try await save(id) }
    }

    /// Cancels an upload, removes it from the queue, and deletes its upload URL on the server; whether the server
    /// deletes the received bytes is not checked. Has no effect on a finished upload. Cancelling the task ends only the
    /// wait.
    public func cancel(_ id: UploadID) async {
        guard !isClosing, let entry = managed[id] else { return }
        let old = machine.phase(of: id.queued)
        apply(machine.cancel(id.queued, now: now()))
        if machine.phase(of: id.queued) != old || entry.isUnsaved { try? await save(id) }
        for await state in LatestValues(entry.status.states, { $0 }) {
            switch state {
            case .finished, .cancelled: return
            case .waiting, .running, .paused, .failed: continue
            }
        }
    }

    /// Removes a finished or failed upload from the list.
    /// - Throws: An `HTTPError`: `.invalidRequest` if the upload is not over, or unknown; `.fileFailed` if its record
    ///   cannot be removed, so that the next manager lists the upload again; `.uploadManagerClosed`.
    public func remove(_ id: UploadID) async throws {
        try checkOpen()
        guard managed[id] != nil else { throw unknown(id) }
        guard machine.remove(id.queued) else {
            throw HTTPError(.invalidRequest, phase: .preparing, message: "upload \(id) is not over")
        }
        forget(id)
        try await store.remove(id.number)
    }

    /// Resumes all paused uploads in the order of their addition. Failed ones remain failed.
    /// - Throws: The errors of ``resume(_:)``.
    public func resumeAll() async throws {
        for id in managed.keys.sorted() where [.paused, .stopping(.pause)].contains(machine.phase(of: id.queued)) {
            try await resume(id)
        }
    }

    /// Stops the running uploads, and releases the directory. Returns when no connection and no file is open. The next
    /// manager of the directory resumes the unfinished uploads.
    ///
    /// It waits for the uploads, so the closure that prepares their requests must not await it.
    public func close() async {
        guard !isClosing else {
            await isClosed.becomesTrue()
            return
        }
        isClosing = true
        machine.close()
        for entry in managed.values { entry.run?.cancel() }
        await runs.finish()
        await store.close(lastNumber: lastNumber)
        end()
        for entry in managed.values { entry.status.end() }
        isClosed.update { true }
    }

    private nonisolated func end() {
        progressByUpload.finish()
        isAllFinished.finish()
    }

    /// Whether the file of an upload is still the one that was added.
    package func hasCurrentFile(_ id: UploadID) async -> Bool {
        guard let item = managed[id]?.item else { return false }
        return (try? await UploadFileIdentity.of(item.path)) == item.file
    }

    func checkOpen() throws(HTTPError) {
        guard isClosing else { return }
        throw HTTPError(
            .uploadManagerClosed, phase: .preparing,
            message: "the upload manager of \(directory) was closed; open it again")
    }

    private func unknown(_ id: UploadID) -> HTTPError {
        HTTPError(.invalidRequest, phase: .preparing, message: "there is no upload \(id)")
    }
}
