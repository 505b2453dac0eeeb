import MartletStreams
import MartletCoding
public import MartletCore
import MartletDiagnostics
public import MartletConnections
public import SystemPackage

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

/// Options are encoded without secrets: the fields `Authorization`, `Proxy-Authorization`, `Cookie` and `Set-Cookie` of
/// ``headers``, and of ``request`` what its own coding leaves out, are not written. Keys that are not known are ignored; those
/// that are missing have their default.
extension DownloadOptions: Codable {
    private enum CodingKeys: String, CodingKey {
        case segments, checksum, collision, resumption, retry, stallTimeout, checkpointInterval, bandwidth
        case sequentialWindow, byteLimit, keepsRemoteTime, headers, request
    }

    /// Reads options.
    /// - Throws: `DecodingError`, also for a checksum that has not as many bytes as its function gives.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init()
        func read<Value: Decodable>(_ key: CodingKeys, _ value: inout Value) throws {
            value = try container.decodeIfPresent(Value.self, forKey: key) ?? value
        }
        try read(.segments, &segments)
        try read(.checksum, &checksum)
        if let given = checksum, Checksum(given.algorithm, given.bytes) == nil {
            throw DecodingError.dataCorruptedError(
                forKey: .checksum, in: container,
                debugDescription: "not as many bytes as \(given.algorithm.rawValue) gives")
        }
        try read(.collision, &collision)
        try read(.resumption, &resumption)
        try read(.retry, &retry)
        try read(.stallTimeout, &stallTimeout)
        try read(.checkpointInterval, &checkpointInterval)
        try read(.bandwidth, &bandwidth)
        try read(.sequentialWindow, &sequentialWindow)
        try read(.byteLimit, &byteLimit)
        try read(.keepsRemoteTime, &keepsRemoteTime)
        try read(.headers, &headers)
        try read(.request, &request)
    }

    /// Writes the options, without secrets.
    /// - Throws: `EncodingError.invalidValue` where a closure chooses the proxy, and for a validator of ``request``.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(segments, forKey: .segments)
        try container.encodeIfPresent(checksum, forKey: .checksum)
        try container.encode(collision, forKey: .collision)
        try container.encode(resumption, forKey: .resumption)
        try container.encode(retry, forKey: .retry)
        try container.encode(stallTimeout, forKey: .stallTimeout)
        try container.encode(checkpointInterval, forKey: .checkpointInterval)
        try container.encodeIfPresent(bandwidth, forKey: .bandwidth)
        try container.encodeIfPresent(sequentialWindow, forKey: .sequentialWindow)
        if byteLimit != .unlimited { try container.encode(byteLimit, forKey: .byteLimit) }
        if keepsRemoteTime { try container.encode(true, forKey: .keepsRemoteTime) }
        let headers = headers.withoutSecrets
        if !headers.isEmpty { try container.encode(headers, forKey: .headers) }
        try container.encode(request, forKey: .request)
    }
}

/// How often and when a download tries again after a failure that may pass.
///
/// Counted are failures since the last byte that was new: a download that gets ahead may fail any number of times. Passing
/// failures are those of ``MartletCore/RetryPolicy``, a stall, and the statuses 408, 425, 429, 500, 502, 503 and 504. Before each
/// try passes a random part of a span that doubles (full jitter), or what `Retry-After` says.
public struct DownloadRetry: Hashable, Sendable, Codable {
    /// How many failures in a row are borne; 5 by default, 0 for none.
    public var attempts: Int
    /// The span before the first repetition; 500 ms by default.
    public var firstDelay: Duration
    /// The longest span; 30 s by default.
    public var longestDelay: Duration
    /// The longest `Retry-After` that is waited for in full, and what is waited for in place of a longer one; 2 minutes
    /// by default.
    public var longestRetryAfter: Duration

    /// The settings; see the properties for what they are by default.
    public init(
        attempts: Int = 5, firstDelay: Duration = .milliseconds(500), longestDelay: Duration = .seconds(30),
        longestRetryAfter: Duration = .seconds(120)
    ) {
        self.attempts = attempts
        self.firstDelay = firstDelay
        self.longestDelay = longestDelay
        self.longestRetryAfter = longestRetryAfter
    }
}

/// Where a download goes.
public enum DownloadTarget: Hashable, Sendable, Codable {
    /// To a file of this name, whose folder must exist.
    case file(FilePath)
    /// Into a folder that must exist, under the name that the server proposes (`Content-Disposition`, RFC 6266), else that
    /// of the URL's path; made safe, so that it is never outside of the folder, nor hidden. `download` where there is
    /// none.
    case folder(FilePath)
}
