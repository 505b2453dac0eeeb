import MartletNetwork
import MartletURL
import MartletCaching
public import MartletCore
public import SystemPackage

extension HTTPSession {
    /// Downloads a file: over several connections where that is faster, going on with what an earlier run left, verified,
    /// and under its name only when it is complete and synced.
    ///
    /// What has come lies beside the target, in files whose names end in `.martlet-part` and `.martlet-record`, until the file is
    /// complete. Cancelling the task keeps them, as far as a later call can go on with them, and returns when no
    /// connection and no file is open any more.
    ///
    /// - Parameters:
    ///   - url: Where the file is. Redirects are followed as the session has it.
    ///   - path: The file's name; its folder must exist.
    ///   - options: How.
    ///   - progress: Called with the newest state, not with every one; the last state always comes.
    /// - Throws: An ``HTTPError``: `.unacceptableStatus`, `.checksumMismatch`, `.representationChanged`, `.rangeRefused`,
    ///   `.notResumable`, `.fileExists`, `.alreadyInProgress`, `.diskFull`, `.fileFailed`, `.bodyTooLarge`, and those of
    ///   requests; `CancellationError`.
    @discardableResult
    public nonisolated func download(
        _ url: String, to path: FilePath, options: DownloadOptions = DownloadOptions(),
        progress: (@Sendable (DownloadProgress) -> Void)? = nil
    ) async throws -> DownloadResult {
        try await download(url, to: .file(path), options: options, progress: progress)
    }

    /// Downloads a file to a name or into a folder; else as ``download(_:to:options:progress:)``.
    @discardableResult
    public nonisolated func download(
        _ url: String, to target: DownloadTarget, options: DownloadOptions = DownloadOptions(),
        progress: (@Sendable (DownloadProgress) -> Void)? = nil
    ) async throws -> DownloadResult {
        let status = DownloadStatus(.running)
        let plan = DownloadJob.Plan(url: try HTTPURL(downloading: url), target: target, options: options)
        let job = DownloadJob(plan, session: self, slots: FreeSlots(), status: status)
        guard let progress else { return try await job.run() }
        async let result = {
            // Also where it failed before it began: the last state always comes.
            defer { status.progress.finish() }
            return try await job.run()
        }()
        for await value in DownloadProgressSequence(source: status.progress) { progress(value) }
        return try await result
    }

    /// Begins a download and returns its handle; else as ``download(_:to:options:progress:)``.
    ///
    /// It runs on when its maker's task ends, and when the handle is let go.
    /// - Throws: An ``HTTPError`` where the URL cannot be parsed.
    public nonisolated func beginDownload(
        _ url: String, to target: DownloadTarget, options: DownloadOptions = DownloadOptions()
    ) throws -> Download { beginDownload(try HTTPURL(downloading: url), to: target, options: options) }

    /// Begins a download of a URL that was parsed.
    package nonisolated func beginDownload(
        _ url: HTTPURL, to target: DownloadTarget, options: DownloadOptions
    ) -> Download {
        let status = DownloadStatus(.running)
        let plan = DownloadJob.Plan(url: url, target: target, options: options)
        let job = DownloadJob(plan, session: self, slots: FreeSlots(), status: status)
        let controller = SoleDownload(job, status: status)
        controller.begin()
        return Download(id: SoleDownload.nextID(), status: status, controller: controller)
    }
}

extension HTTPURL {
    /// Parses the URL of a download.
    init(downloading text: String) throws(HTTPError) {
        do throws(HTTPURL.ParseError) {
            self = try HTTPURL(text)
        } catch {
            throw HTTPError(.invalidURL, phase: .preparing, message: error.description, underlying: error)
        }
    }
}

extension HTTPError.Code {
    /// The bytes of a download do not match its checksum.
    public static let checksumMismatch = HTTPError.Code(rawValue: "checksumMismatch")
    /// The file changed on the server repeatedly during the download.
    public static let representationChanged = HTTPError.Code(rawValue: "representationChanged")
    /// The response to a request for a part of a file is not that part.
    public static let rangeRefused = HTTPError.Code(rawValue: "rangeRefused")
    /// Nothing shows that the bytes of an earlier run still belong to the file.
    public static let notResumable = HTTPError.Code(rawValue: "notResumable")
}
