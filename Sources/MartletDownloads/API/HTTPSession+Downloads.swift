public import MartletCore

extension HTTPSession {
    /// Downloads a file over several connections where that is faster, resumes an earlier run, and verifies the file. It gets its
    /// name only when it is complete and synced.
    ///
    /// Until then the received bytes are beside the target, in files that end in `.martlet-part` and `.martlet-record`. Cancelling
    /// the task keeps them as far as a later call can resume them, and returns when no connection and no file is open.
    ///
    /// - Parameters:
    ///   - url: the URL of the file. Redirects are followed as the session is configured.
    ///   - path: the path of the file; its directory must exist.
    ///   - options: the options.
    ///   - progress: called with the newest progress, not with each; the last one is always delivered.
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

    /// Downloads to a file or into a directory; otherwise as ``download(_:to:options:progress:)``.
    @discardableResult
    public nonisolated func download(
        _ url: String, to target: DownloadTarget, options: DownloadOptions = DownloadOptions(),
        progress: (@Sendable (DownloadProgress) -> Void)? = nil
    ) async throws -> DownloadResult {
        let status = DownloadStatus(.running)
        let plan = DownloadJob.Plan(url: try HTTPURL(downloading: url), target: target, options: options)
        let job = DownloadJob(plan, session: self, status: status)
        guard let progress else { return try await job.run() }
        async let result = {
            // Also after an early failure: the last progress is always delivered.
            defer { status.progress.finish() }
            return try await job.run()
        }()
        for await value in status.progressSequence { progress(value) }
        return try await result
    }

    /// Starts a download and returns its handle; otherwise as ``download(_:to:options:progress:)``.
    ///
    /// It continues when the calling task ends, and when the handle is released.
    /// - Throws: An ``HTTPError`` if the URL cannot be parsed.
    public nonisolated func startDownload(
        _ url: String, to target: DownloadTarget, options: DownloadOptions = DownloadOptions()
    ) throws -> Download { startDownload(try HTTPURL(downloading: url), to: target, options: options) }

    /// Starts a download of a parsed URL.
    package nonisolated func startDownload(
        _ url: HTTPURL, to target: DownloadTarget, options: DownloadOptions
    ) -> Download {
        let status = DownloadStatus(.running)
        let plan = DownloadJob.Plan(url: url, target: target, options: options)
        let controller = StandaloneDownload(DownloadJob(plan, session: self, status: status), status: status)
        controller.begin()
        return Download(id: StandaloneDownload.nextID(), status: status, controller: controller)
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
