public import MartletCore

extension HTTPSession {
    /// Downloads a file, over several connections if that is faster. Resumes an earlier run, and verifies the file.
    ///
    /// The file gets its name when it is complete and synced. Until then the received bytes are next to it, in files
    /// that end in `.martlet-part` and `.martlet-record`. If the task is cancelled, the bytes that a later call can
    /// reuse are retained, and the call returns when no connection and no file is open.
    ///
    /// A second call for a file that is complete throws `.fileExists`, unless ``DownloadOptions/collision`` is `.skip`,
    /// `.overwrite` or `.rename`. Every combination of parameters resumes; `save` sends one request instead.
    ///
    /// - Parameters:
    ///   - url: The URL, or a GET request whose header fields are added to the options. Redirects are followed.
    ///   - path: The path of the file, a `String` or a `FilePath`; its directory must exist.
    ///   - overwrites: Whether an existing file is replaced; `nil` (the default) for ``DownloadOptions/collision``.
    ///   - query: Appended to the URL; null for none.
    ///   - headers: Fields that replace those of the options and of the request.
    ///   - timeout: The maximum duration of the download, with all of its requests; `nil` (the default) for no limit.
    ///     The received bytes are retained when it expires.
    ///   - options: The options.
    ///   - progress: Called on the caller's actor with the latest progress; intermediate values may be skipped, the
    ///     last one is always delivered.
    /// - Throws: An ``HTTPError``: `.unacceptableStatus`, `.checksumMismatch`, `.representationChanged`,
    ///   `.rangeRejected`, `.notResumable`, `.fileExists`, `.alreadyInProgress`, `.diskFull`, `.fileFailed`,
    ///   `.bodyTooLarge`, `.timedOut`, or the code of a failed request; `CancellationError`.
    @discardableResult public nonisolated func download(
        _ url: some HTTPTarget, to path: some FilePathConvertible, overwrites: Bool? = nil,
        query: ParameterValue = .null, headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil,
        options: DownloadOptions = DownloadOptions(), progress: ((DownloadProgress) -> Void)? = nil
    ) async throws -> DownloadResult {
        try await download(
            url, to: .file(path), overwrites: overwrites, query: query, headers: headers, timeout: timeout,
            options: options, progress: progress)
    }

    /// Downloads to a file or into a directory. Otherwise like `download(_:to:)` with a path.
    @discardableResult public nonisolated func download(
        _ url: some HTTPTarget, to target: DownloadTarget, overwrites: Bool? = nil, query: ParameterValue = .null,
        headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil, options: DownloadOptions = DownloadOptions(),
        progress: ((DownloadProgress) -> Void)? = nil
    ) async throws -> DownloadResult {
        let status = DownloadStatus(.running)
        let job = try job(url, to: target, options.with(overwrites, headers, timeout), status, query: query)
        guard let progress else { return try await job.run() }
        return try await HTTPSession.reporting(status.progress, to: progress) {
            // Also after an early failure: the last progress is always delivered.
            defer { status.progress.finish() }
            return try await job.run()
        }
    }

    /// Starts a download and returns its handle. Otherwise like `download(_:to:)`.
    ///
    /// The download continues after the calling task has ended, and after the handle was released.
    /// - Throws: An ``HTTPError``: `.invalidURL`; `.invalidHeader`; `.invalidRequest` for a request that is not a GET.
    public nonisolated func startDownload(
        _ url: some HTTPTarget, to target: DownloadTarget, options: DownloadOptions = DownloadOptions()
    ) throws -> Download { try startDownload(url, to: target, options: options) { $0 } }

    /// Starts a download. `mapped` maps the error that ``Download/value`` throws.
    package nonisolated func startDownload(
        _ url: some HTTPTarget, to target: DownloadTarget, options: DownloadOptions,
        mapped: @escaping @Sendable (any Error) -> any Error
    ) throws -> Download {
        let (download, controller) = try makeDownload(url, to: target, options: options, mapped: mapped)
        controller.begin()
        return download
    }

    /// Creates a download that has not started.
    package nonisolated func makeDownload(
        _ url: some HTTPTarget, to target: DownloadTarget, options: DownloadOptions,
        mapped: @escaping @Sendable (any Error) -> any Error = { $0 }
    ) throws -> (download: Download, controller: StandaloneDownload) {
        let status = DownloadStatus(.running)
        let controller = StandaloneDownload(try job(url, to: target, options, status), status: status)
        return (
            Download(id: StandaloneDownload.nextID(), status: status, controller: controller, mapped: mapped),
            controller
        )
    }

    /// Creates a download. The header fields of the request are added to those of the options.
    private nonisolated func job(
        _ url: some HTTPTarget, to target: DownloadTarget, _ options: DownloadOptions, _ status: DownloadStatus,
        query: ParameterValue = .null
    ) throws -> DownloadJob {
        var options = options
        let url = try adding(query, to: try options.take(url))
        return DownloadJob(DownloadJob.Plan(url: url, target: target, options: options), session: self, status: status)
    }
}

extension DownloadOptions {
    /// Returns the options with the parameters of a call, which override them.
    package func with(_ overwrites: Bool?, _ headers: HTTPHeaders, _ timeout: Duration?) -> DownloadOptions {
        var (options, all) = (self, headers)
        if let overwrites { options.overwrites = overwrites }
        all.fill(from: options.headers)
        options.headers = all
        options.timeLimit = timeout ?? timeLimit
        return options
    }

    /// Adds the header fields of a target to the options, unless the options already have them.
    /// - Returns: The URL of the target.
    mutating func take(_ target: some HTTPTarget) throws(HTTPError) -> HTTPURL {
        let (url, fields) = try target.httpTarget.partsOfGET()
        headers.fill(from: fields)
        _ = try headers.checked(url)
        try checksum?.check(url)
        try checkMirrors(of: url)
        return url
    }
}

extension HTTPError.Code {
    /// The file changed on the server repeatedly during the download, or its validators are no longer sent.
    public static let representationChanged = HTTPError.Code(rawValue: "representationChanged")
    /// The response to a request for a part of a file is not that part.
    public static let rangeRejected = HTTPError.Code(rawValue: "rangeRejected")
    /// Nothing shows that the bytes of an earlier run still belong to the file.
    public static let notResumable = HTTPError.Code(rawValue: "notResumable")
    /// The ``DownloadManager`` was closed; another one can be opened with its directory.
    public static let downloadManagerClosed = HTTPError.Code(rawValue: "downloadManagerClosed")
}
