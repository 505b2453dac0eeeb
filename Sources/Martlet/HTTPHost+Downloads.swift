public import MartletCore
public import MartletDownloads
public import MartletHosts

// Downloads of a host: its headers, options and credentials apply, but not to another origin after a redirect.
extension HTTPHost {
    /// Starts a download of a path and returns its handle, like ``HTTPSession/startDownload(_:to:options:)``.
    /// ``Download/value`` throws the error that ``errors`` returns; states and events contain the ``HTTPError``.
    /// - Parameters:
    ///   - path: A path below the base, or a whole URL; see `url(for:)`.
    ///   - target: The file, or the directory.
    ///   - query: Appended to the URL; null for none.
    ///   - options: ``DownloadOptions/headers`` override those of the host; `nil` for the host's ``options``.
    /// - Throws: The errors of `prepare(_:_:parameters:)`.
    public func startDownload(
        _ path: some HTTPTarget, to target: DownloadTarget, query: ParameterValue = .null,
        options: DownloadOptions? = nil
    ) throws -> Download {
        let (url, options) = try preparedDownload(path, query, options)
        return try session.startDownload(url, to: target, options: options) { mapped($0) }
    }

    /// Downloads a path below the base, or a whole URL, like `HTTPSession.download(_:to:)`, whose parameters it has.
    ///
    /// `headers` replace those of the options, and these replace the host's. Without options, the host's apply.
    /// - Throws: The errors of that function and of `prepare(_:_:parameters:)`, or their replacements by ``errors``;
    ///   `CancellationError`.
    @discardableResult public func download(
        _ path: some HTTPTarget, to file: some FilePathConvertible, overwrites: Bool? = nil,
        query: ParameterValue = .null, headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil,
        options: DownloadOptions? = nil, progress: ((DownloadProgress) -> Void)? = nil
    ) async throws -> DownloadResult {
        let given = (options ?? DownloadOptions()).with(overwrites, headers, timeout)
        let (url, options) = try mapped { try preparedDownload(path, query, given) }
        do { return try await session.download(url, to: file, options: options, progress: progress) } catch {
            throw mapped(error)
        }
    }

    fileprivate func preparedDownload(_ path: some HTTPTarget, _ parameters: ParameterValue, _ given: DownloadOptions?)
        throws -> (HTTPURL, DownloadOptions)
    {
        var options = given ?? DownloadOptions()
        let prepared = try prepare(
            .get, path, parameters: parameters, headers: options.headers, options: given?.request)
        options.secretFields = secretFieldNames.subtracting(options.headers.lazy.map(\.name))
        options.headers = HTTPHeaders(prepared.request.headerFields)
        options.request = prepared.options
        // A download has its own rules for responses, and a manager could not store a closure.
        options.request.validator = nil
        return (try HTTPSession.url(of: prepared.request), options)
    }
}

extension DownloadManager {
    /// Adds a download of a path of a host, like `add(_:to:)`. The manager's session sends the requests, with the
    /// host's headers, options and credentials.
    ///
    /// The host's headers, other than `Accept`, `Accept-Language`, `Accept-Encoding` and `User-Agent`, and its
    /// credentials are not written to disk. In a later process the closure that prepares requests has to add the
    /// headers (`HTTPHost.addHeaders(to:for:)`), and the session has to have the credentials:
    ///
    /// ```swift
    /// let downloads = try await DownloadManager(
    ///     session: api.session, directory: directory
    /// ) { fields, url in
    ///     api.addHeaders(to: &fields, for: url)
    /// }
    /// ```
    /// The parameters are those of `HTTPHost.startDownload(_:to:query:options:)` and `add(_:to:)`. The host's
    /// ``RequestOptions/onInterimResponse`` is not used, because a manager cannot store it.
    /// - Throws: The errors of `add(_:to:)` and of `HTTPHost.prepare(_:_:parameters:)`.
    @discardableResult public func add(
        _ path: some HTTPTarget, of host: HTTPHost, to target: DownloadTarget, query: ParameterValue = .null,
        options: DownloadOptions? = nil, priority: DownloadPriority = .normal, ifPresent policy: DuplicatePolicy = .fail
    ) async throws -> DownloadID {
        let (url, given) = try host.preparedDownload(path, query, options)
        // A manager cannot store a closure, and rejects that of the caller.
        var prepared = given
        if options?.request.onInterimResponse == nil { prepared.request.onInterimResponse = nil }
        return try await add(url, to: target, options: prepared, priority: priority, ifPresent: policy)
    }
}
