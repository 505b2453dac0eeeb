import FoundationEssentials
import MartletCoding
public import MartletCore
import MartletStreams

/// The options of a download.
public struct DownloadOptions: Sendable {
    /// The action if a file of the same name exists.
    public enum Collision: String, Hashable, Sendable, Codable {
        /// The download fails with `.fileExists`, even if the file appears at the last moment.
        case fail
        /// The file is replaced once the new one is complete. A directory, device, pipe or socket is an error.
        case overwrite
        /// The existing file is the result, and nothing is fetched. It is compared with the checksum, if one is given:
        /// a file that differs stays, and the download fails with `.checksumMismatch`. In a directory the name is known
        /// only after the head of the response. A file that appears during the transfer is the result, too. A directory
        /// or a symbolic link of that name is an error.
        case skip
        /// The new file gets another name: `name (1).txt`, `name (2).txt`, up to 999.
        case rename
    }

    /// The use of bytes that an earlier run received.
    public enum Resumption: String, Hashable, Sendable, Codable {
        /// The bytes are reused if a validator proves that they still belong to the file, or a checksum will verify it.
        case automatic
        /// Like ``automatic``, but without proof the last 64 KiB are compared. Other changes are not detected.
        case unverified
        /// The bytes are discarded.
        case restart
    }

    /// The protection of a finished file against a power cut.
    public enum Durability: String, Hashable, Sendable, Codable {
        /// The file is synced before it gets its name, then its directory is synced. A finished file is on the disk.
        case synced
        /// The system writes the file to the disk later, usually within a minute. If the power fails or the system
        /// crashes before that, the file may be empty, incomplete or missing, and so may a file that it replaced. A
        /// process that is killed loses nothing. Received bytes are still synced before a record claims them, so that
        /// a download never resumes from lost bytes.
        case unsynced
    }

    /// The maximum number of connections for the file, 1 to 64 (default 4). The download starts with one, soon adds
    /// more, and drops those that do not make it a tenth faster. Files of up to 8 MiB are fetched with one request.
    public var segments: Int
    /// The expected checksum; `nil` for none. A `Repr-Digest` of the server (RFC 9530) is always verified, and so is a
    /// `Content-Digest` of a response with the whole file. Without a checksum, the first request asks for a digest
    /// (`Want-Repr-Digest`).
    public var checksum: Checksum?
    /// Other URLs of the same file, in the order of preference; none by default, ``mirrorLimit`` at most.
    ///
    /// The connections are spread over all URLs, most of them to the fastest. If a URL fails, another one
    /// continues at the byte reached; the download fails when all have failed. Bytes of several servers are mixed only
    /// if their strong entity tags or `Repr-Digest` are equal, or ``checksum`` verifies the file; other mirrors are
    /// used when all others have failed, and then for the whole file. If mixed bytes do not match the checksum, the
    /// file is fetched again from one URL. Credentials are not sent to a mirror on another origin. The mirrors of
    /// an `https` URL must use `https`, unless there is a SHA-2 checksum. User info is not written to disk.
    public var mirrors: [HTTPURL] = []
    /// The length of the file in bytes, if it is known in advance. A response of another length is an error. `nil` (the
    /// default) accepts any length.
    public var expectedByteCount: UInt64?
    /// The action if a file of the same name exists; ``Collision/fail`` by default.
    public var collision: Collision
    /// Whether an existing file is replaced: `true` for ``Collision/overwrite``, `false` for ``Collision/fail``.
    public var overwrites: Bool {
        get { collision == .overwrite }
        set { collision = newValue ? .overwrite : .fail }
    }
    /// The use of bytes that an earlier run received; ``Resumption/automatic`` by default.
    public var resumption: Resumption
    /// Retries after transient failures.
    public var retry: DownloadRetry
    /// The time without a byte after which a connection is replaced by another: 30 s by default, 100 ms to a day.
    public var stallTimeout: Duration
    /// The interval at which received bytes are synced and recorded, so that they survive the process: 2 s by default,
    /// at least 50 ms. It is shorter in the first minutes, down to 100 ms, unless syncs are slow.
    public var checkpointInterval: Duration
    /// The maximum rate of all connections of the download together; by default that of the session.
    public var bandwidth: BandwidthRate?
    /// The maximum number of bytes fetched ahead of the first missing one, at least 1 MiB; `nil` for no limit.
    public var sequentialWindow: ByteCount?
    /// The maximum length of the file; unlimited by default.
    public var byteLimit: ByteCount
    /// Whether the modification time of the file is that of `Last-Modified`; `false` by default.
    public var preservesModificationTime: Bool
    /// The protection of a finished file against a power cut; ``Durability/synced`` by default. Without syncs, many
    /// small files are faster on a disk.
    public var durability: Durability
    /// Fields of each request. Fields with credentials are not written to disk, and not sent to another origin.
    public var headers: HTTPHeaders
    /// The names of further fields that are not written to disk: the secret fields of a host.
    package var secretFields: Set<HTTPField.Name> = []
    /// The remaining time below which a transfer keeps its range; `nil` to derive it from the server's response times.
    package var takeoverThreshold: Duration?
    /// The maximum duration of a run; `nil` for no limit. It is not written to disk.
    package var timeLimit: Duration?
    /// Options of the requests that override those of the session. `retry`, `bandwidth`, `decompresses`, the cache mode
    /// and validators are ignored: a download has its own rules. A ``DownloadManager`` rejects a validator, and
    /// ``RequestOptions/onInterimResponse``.
    public var request: RequestOptions

    /// Creates options; the properties document the defaults.
    public init(
        segments: Int = 4, checksum: Checksum? = nil, collision: Collision = .fail, resumption: Resumption = .automatic,
        retry: DownloadRetry = DownloadRetry(), stallTimeout: Duration = .seconds(30),
        checkpointInterval: Duration = .seconds(2), bandwidth: BandwidthRate? = nil, sequentialWindow: ByteCount? = nil,
        byteLimit: ByteCount = .unlimited, preservesModificationTime: Bool = false, durability: Durability = .synced,
        headers: HTTPHeaders = HTTPHeaders(), request: RequestOptions = RequestOptions(), mirrors: [HTTPURL] = [],
        expectedByteCount: UInt64? = nil
    ) {
        (self.segments, self.checksum, self.collision, self.resumption) = (segments, checksum, collision, resumption)
        (self.retry, self.stallTimeout, self.checkpointInterval) = (retry, stallTimeout, checkpointInterval)
        (self.bandwidth, self.sequentialWindow, self.byteLimit) = (bandwidth, sequentialWindow, byteLimit)
        (self.preservesModificationTime, self.durability) = (preservesModificationTime, durability)
        (self.headers, self.request) = (headers, request)
        (self.mirrors, self.expectedByteCount) = (mirrors, expectedByteCount)
    }
}

/// Options are encoded without `Authorization`, `Proxy-Authorization`, `Cookie` and `Set-Cookie` of ``headers``, and
/// without the secrets of ``request``. Unknown keys are ignored; missing ones have their defaults.
extension DownloadOptions: Codable {
    private enum CodingKeys: String, CodingKey {
        case segments, checksum, collision, resumption, retry, stallTimeout, checkpointInterval, bandwidth
        case sequentialWindow, byteLimit, preservesModificationTime, durability, headers, request, mirrors
        case expectedByteCount
    }

    /// Decodes options.
    /// - Throws: `DecodingError`, also for a checksum that does not have the length of its hash function.
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
                debugDescription: "the number of bytes is not that of \(given.algorithm.rawValue)")
        }
        try read(.collision, &collision)
        try read(.resumption, &resumption)
        try read(.retry, &retry)
        try read(.stallTimeout, &stallTimeout)
        try read(.checkpointInterval, &checkpointInterval)
        try read(.bandwidth, &bandwidth)
        try read(.sequentialWindow, &sequentialWindow)
        try read(.byteLimit, &byteLimit)
        try read(.preservesModificationTime, &preservesModificationTime)
        try read(.durability, &durability)
        try read(.headers, &headers)
        try read(.request, &request)
        try read(.mirrors, &mirrors)
        expectedByteCount = try container.decodeIfPresent(UInt64.self, forKey: .expectedByteCount)
    }

    /// Encodes the options, without secrets.
    /// - Throws: `EncodingError.invalidValue` if a closure selects the proxy, and for a validator or
    ///   ``RequestOptions/onInterimResponse`` of ``request``.
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
        if preservesModificationTime { try container.encode(true, forKey: .preservesModificationTime) }
        if durability != .synced { try container.encode(durability, forKey: .durability) }
        var headers = headers.withoutSecrets
        for name in secretFields { headers[name] = nil }
        if !headers.isEmpty { try container.encode(headers, forKey: .headers) }
        try container.encode(request, forKey: .request)
        if !mirrors.isEmpty { try container.encode(mirrors.map(\.withoutUserInfo), forKey: .mirrors) }
        try container.encodeIfPresent(expectedByteCount, forKey: .expectedByteCount)
    }

    /// The options as they are stored: without credentials, and without ``request`` if that cannot be stored.
    var stored: DownloadOptions {
        var options = self
        var bytes = try? JSONEncoder().encode(options)
        if bytes == nil {
            options.request = RequestOptions()
            bytes = try? JSONEncoder().encode(options)
        }
        return bytes.flatMap { try? JSONDecoder().decode(DownloadOptions.self, from: $0) } ?? DownloadOptions()
    }
}

/// Retries of a download after transient failures: those of ``RetryPolicy``, a stall, and the statuses 408, 425, 429,
/// 500, 502, 503 and 504.
public typealias DownloadRetry = TransferRetry

/// The target of a download: a file, or a directory for a file that the server names.
public struct DownloadTarget: Hashable, Sendable, Codable, CustomStringConvertible {
    package enum Kind: Hashable, Sendable, Codable {
        case file(FilePath)
        case directory(FilePath)
    }

    package let kind: Kind

    private enum CodingKeys: String, CodingKey {
        // The former name, so that stored targets can be decoded.
        case kind = "place"
    }

    private init(_ kind: Kind) { self.kind = kind }

    /// Creates a target that is a file at this path, in an existing directory.
    public static func file(_ path: some FilePathConvertible) -> DownloadTarget { DownloadTarget(.file(path.filePath)) }

    /// Creates a target in an existing directory. The file name is the one that the server proposes
    /// (`Content-Disposition`, RFC 6266), otherwise the last component of the URL's path, otherwise `download`. It is
    /// sanitized: the file is never outside of the directory, and not hidden.
    public static func directory(_ path: some FilePathConvertible) -> DownloadTarget {
        DownloadTarget(.directory(path.filePath))
    }

    /// The path of the file or the directory.
    public var path: FilePath {
        switch kind {
        case .file(let path), .directory(let path): path
        }
    }

    /// The path, with a slash at the end if it is a directory.
    public var description: String {
        switch kind {
        case .file(let path): path.string
        case .directory(let path): path.isEmpty ? "./" : DownloadJob.directory(path)
        }
    }
}
