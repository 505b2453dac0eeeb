public import MartletClient
public import MartletConnections

/// How one file is downloaded.
public struct DownloadOptions: Sendable {
    /// What becomes of a file that has the name already.
    public enum Collision: String, Hashable, Sendable, Codable {
        /// The download fails, also when the file appears at the last moment.
        case fail
        /// It is replaced, once the new one is complete. A folder, a device, a pipe or a socket is not: the download fails.
        case overwrite
        /// The new one gets another name: `name (1).txt`, `name (2).txt`, up to 999.
        case rename
    }

    /// What becomes of the bytes that an earlier run left.
    public enum Resumption: String, Hashable, Sendable, Codable {
        /// They are kept where the server proves that they are still those of the file.
        case automatic
        /// As ``automatic``; and where there is neither a validator nor a checksum, they are kept if the last 64 KiB of
        /// them are still the same. A file that changed elsewhere is then not noticed.
        case unverified
        /// They are thrown away.
        case restart
    }

    /// The most connections for the file, 1 to 64; 4 by default. The download begins with one, and adds one while that
    /// makes it faster by a tenth or more. Files of up to 8 MiB come in one request.
    public var segments: Int
    /// What the file must come to; `nil` for no demand. A `Repr-Digest` of the server's (RFC 9530) is verified unasked.
    public var checksum: Checksum?
    /// What becomes of a file that has the name already; ``Collision/fail`` by default.
    public var collision: Collision
    /// What becomes of the bytes that an earlier run left; ``Resumption/automatic`` by default.
    public var resumption: Resumption
    /// How failures are dealt with that may pass.
    public var retry: DownloadRetry
    /// After how long without a byte a connection is given up, and the range asked for by another; 30 s by default, from
    /// 100 ms to a day.
    public var stallTimeout: Duration
    /// How often what has come is synced and noted, so that it survives the process: every 2 s by default, from 50 ms. In
    /// the first minutes it is more often, from 100 ms, so that of a short run most survives, too; but not so often that more
    /// than a 16th of the time goes into syncs.
    public var checkpointInterval: Duration
    /// How fast the download may go, all of its connections together; as fast as the session allows by default.
    public var bandwidth: BandwidthRate?
    /// Whether the bytes are fetched from the first to the last, at most so many ahead of the first missing one, for
    /// those that read the file while it grows; `nil`, the default, for the order that is fastest.
    public var sequentialWindow: ByteCount?
    /// The largest file that is accepted; any by default.
    public var byteLimit: ByteCount
    /// Whether the file gets the time of `Last-Modified`; `false` by default.
    public var keepsRemoteTime: Bool
    /// Fields of each request. Those that hold credentials are not written to disk, and not sent to another origin.
    public var headers: HTTPFields
    /// What a connection will have done sooner than this, no other takes over from it; `nil` for what the server's answers
    /// bring.
    package var patience: Duration?
    /// What the requests do otherwise than their session. Its `retry`, `bandwidth`, `decompresses` and cache mode are
    /// not heeded: a download has its own. Nor is a validator, here or of the session: a download has rules of its own for
    /// what it takes; and one that is set here cannot be written, and so is refused where downloads are kept.
    public var request: RequestOptions

    /// The options; see the properties for what they are by default.
    public init(
        segments: Int = 4, checksum: Checksum? = nil, collision: Collision = .fail,
        resumption: Resumption = .automatic, retry: DownloadRetry = DownloadRetry(),
        stallTimeout: Duration = .seconds(30), checkpointInterval: Duration = .seconds(2),
        bandwidth: BandwidthRate? = nil, sequentialWindow: ByteCount? = nil,
        byteLimit: ByteCount = .unlimited, keepsRemoteTime: Bool = false, headers: HTTPFields = HTTPFields(),
        request: RequestOptions = RequestOptions()
    ) {
        self.segments = segments
        self.checksum = checksum
        self.collision = collision
        self.resumption = resumption
        self.retry = retry
        self.stallTimeout = stallTimeout
        self.checkpointInterval = checkpointInterval
        self.bandwidth = bandwidth
        self.sequentialWindow = sequentialWindow
        self.byteLimit = byteLimit
        self.keepsRemoteTime = keepsRemoteTime
        self.headers = headers
        self.request = request
    }
}
