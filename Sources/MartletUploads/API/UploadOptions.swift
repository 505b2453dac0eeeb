public import MartletCore

/// The protocol by which an upload is resumed.
public enum UploadProtocol: UInt8, Hashable, Sendable, CaseIterable {
    /// The protocol that the server announces in its response to an `OPTIONS` request: ``ietf``, else ``tus``, else
    /// ``plain``. A file of at most 1 MiB that may be sent again is sent without it.
    case automatic = 0
    /// Resumable Uploads for HTTP (draft-ietf-httpbis-resumable-upload-11, interop version 8).
    case ietf = 1
    /// The tus resumable upload protocol 1.0.0, with its extensions creation and termination.
    case tus = 2
    /// One request with the whole file, for servers that cannot resume. After a failure the whole file is sent again,
    /// if that is allowed: see ``UploadOptions/allowsRepetition``.
    case plain = 3
}

/// The options of an upload.
public struct UploadOptions: Hashable, Sendable {
    /// The method of the request that creates the upload; POST by default. The tus protocol always uses POST.
    public var method: HTTPRequest.Method
    /// Fields of the requests. Those about the content, such as `Content-Type` (`application/octet-stream` by default),
    /// `Content-Disposition` and `Idempotency-Key`, are sent only with the request that creates the upload; for tus,
    /// `Upload-Metadata` is the name of the file unless it is set here. Secret fields are neither written to disk nor
    /// sent to an upload URL of another origin.
    public var headers: HTTPHeaders
    /// The protocol; ``UploadProtocol/automatic`` by default.
    public var `protocol`: UploadProtocol
    /// The maximum number of bytes in one request of a resumable upload, at least 1; `nil` (the default) for the limit
    /// that the server announces, or none. It is raised to the minimum that the server announces.
    public var chunkSize: ByteCount?
    /// Retries after transient failures.
    public var retry: UploadRetry
    /// The priority among the waiting uploads of a manager; ``UploadPriority/normal`` by default.
    public var priority: UploadPriority
    /// Whether the whole request may take effect more than once; `false` by default. It is assumed for idempotent
    /// methods, such as PUT, and for requests with an `Idempotency-Key`. Without it, a request that may have taken
    /// effect is not sent again: the upload fails with the code `uploadUncertain`.
    public var allowsRepetition: Bool
    /// The maximum rate of the upload, in addition to the limits of the session; `nil` (the default) for none.
    public var bandwidth: BandwidthRate?
    /// Secret fields in addition to `Authorization`, `Proxy-Authorization`, `Cookie` and `Set-Cookie`.
    public var secretFields: Set<HTTPField.Name>

    /// Creates options; the properties document the defaults.
    public init(
        method: HTTPRequest.Method = .post, headers: HTTPHeaders = HTTPHeaders(), protocol: UploadProtocol = .automatic,
        chunkSize: ByteCount? = nil, retry: UploadRetry = UploadRetry(), priority: UploadPriority = .normal,
        allowsRepetition: Bool = false, bandwidth: BandwidthRate? = nil, secretFields: Set<HTTPField.Name> = []
    ) {
        (self.method, self.headers, self.protocol) = (method, headers, `protocol`)
        (self.chunkSize, self.retry, self.priority) = (chunkSize, retry, priority)
        (self.allowsRepetition, self.bandwidth, self.secretFields) = (allowsRepetition, bandwidth, secretFields)
    }

    /// Whether the whole request may be sent more than once.
    var isRepeatable: Bool {
        allowsRepetition || `protocol` != .tus && method.isIdempotent || headers.contains(.idempotencyKey)
    }
}

/// Retries of an upload after transient failures: those of `RetryPolicy`, the statuses 408, 423, 425, 429, 500, 502,
/// 503 and 504, and a server that disagrees about the offset or has lost the upload.
public typealias UploadRetry = TransferRetry

/// The priority of an upload among the waiting ones. It rises while an upload waits, so that none waits forever.
public enum UploadPriority: UInt8, Hashable, Sendable, CaseIterable {
    /// Starts after the others.
    case low = 0
    /// The default priority.
    case normal = 1
    /// Starts before the others.
    case high = 2
}

/// The limits of an ``UploadManager``. Numbers below 1 count as 1, except ``concurrentFiles``.
public struct UploadLimits: Hashable, Sendable {
    /// The maximum number of concurrent uploads; 3 by default. With 0 none starts.
    public var concurrentFiles: Int
    /// The maximum number of concurrent uploads to one host (name and port); 2 by default.
    public var perHost: Int

    /// Creates limits; the properties document the defaults.
    public init(concurrentFiles: Int = 3, perHost: Int = 2) {
        (self.concurrentFiles, self.perHost) = (concurrentFiles, perHost)
    }
}

extension HTTPError.Code {
    /// The server's responses contradict the upload: no upload URL, an offset after the end of the file, another
    /// length, or a size limit that the file exceeds.
    public static let uploadRejected = HTTPError.Code(rawValue: "uploadRejected")
    /// The file is no longer the one that was added: its length, modification time or identity changed. Resuming the
    /// upload sends the new file from its start.
    public static let uploadFileChanged = HTTPError.Code(rawValue: "uploadFileChanged")
    /// The server may have received the whole file, its response was lost, and the request must not be sent again.
    /// Resuming the upload sends it again.
    public static let uploadUncertain = HTTPError.Code(rawValue: "uploadUncertain")
    /// The ``UploadManager`` was closed; another one can be opened with its directory.
    public static let uploadManagerClosed = HTTPError.Code(rawValue: "uploadManagerClosed")
}
