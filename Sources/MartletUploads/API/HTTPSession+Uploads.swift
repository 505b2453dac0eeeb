public import MartletCore

extension HTTPSession {
    /// Uploads a file, and resumes after failures as long as this call runs. A call that is cancelled leaves an
    /// unfinished upload on the server; an ``UploadManager`` resumes it in another run or process.
    ///
    /// - Parameters:
    ///   - file: The path of a regular file, which must stay unchanged.
    ///   - target: The URL, or a request. Its method replaces that of the options; fields of the options replace its
    ///     fields of the same name.
    ///   - options: The options. The priority has no effect.
    ///   - progress: Called on the caller's actor with the latest progress; intermediate values may be skipped, the last
    ///     one is always delivered.
    /// - Throws: An `HTTPError`: `.invalidURL`, `.invalidHeader`, `.fileFailed`, `.unacceptableStatus` with the
    ///   response, `.uploadRejected`, `.uploadFileChanged`, `.uploadUncertain`, or the code of a failed request;
    ///   `CancellationError`.
    @discardableResult public nonisolated func uploadResumably(
        _ file: some FilePathConvertible, to target: some HTTPTarget, options: UploadOptions = UploadOptions(),
        progress: ((UploadProgress) -> Void)? = nil
    ) async throws -> UploadResult {
        let item = try await UploadItem(file.filePath, target, options, self)
        let status = UploadStatus(.running, UploadProgress(item))
        let session = forUploads
        let run = UploadRun(
            UploadRun.Order(item: item, session: session, status: status, prepare: nil, record: { _, _, _ in }))
        guard let progress else { return try await run.run() }
        return try await HTTPSession.reporting(status.progress, to: progress) {
            // Also after a failure: the last progress is always delivered.
            defer { status.end() }
            return try await run.run()
        }
    }
}

extension HTTPSession {
    /// The session with its own errors instead of mapped ones.
    nonisolated var forUploads: HTTPSession { configuration.errors == nil ? self : with { $0.errors = nil } }
}

extension UploadItem {
    /// Creates an upload, which has no number yet.
    init(_ file: FilePath, _ target: some HTTPTarget, _ given: UploadOptions, _ session: HTTPSession) async throws {
        var options = given
        let form = target.httpTarget
        let request = try session.request(for: target, headers: given.headers)
        if form.method != nil { options.method = request.method }
        // A string is parsed again, because a request has no user info.
        var url = try HTTPSession.url(of: request)
        if case .text(let text) = form { url = try HTTPSession.url(text).withoutFragment }
        if case .url(let given) = form { url = given.withoutFragment }
        options.headers = HTTPHeaders(request.headerFields)
        let path = try HTTPError.storing { () throws(StorageError) in try WorkingDirectory.absolute(file.string) }
        self.init(url: url, path: path, file: try await UploadFileIdentity.of(path), options: options)
    }
}
