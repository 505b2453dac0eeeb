import MartletClient
import MartletConnections

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
        segments = try container.decodeIfPresent(Int.self, forKey: .segments) ?? segments
        if let given = try container.decodeIfPresent(Checksum.self, forKey: .checksum) {
            guard let checksum = Checksum(given.algorithm, given.bytes) else {
                throw DecodingError.dataCorruptedError(
                    forKey: .checksum, in: container,
                    debugDescription: "not as many bytes as \(given.algorithm.rawValue) gives")
            }
            self.checksum = checksum
        }
        collision = try container.decodeIfPresent(Collision.self, forKey: .collision) ?? collision
        resumption = try container.decodeIfPresent(Resumption.self, forKey: .resumption) ?? resumption
        retry = try container.decodeIfPresent(DownloadRetry.self, forKey: .retry) ?? retry
        stallTimeout = try container.decodeIfPresent(Duration.self, forKey: .stallTimeout) ?? stallTimeout
        checkpointInterval =
            try container.decodeIfPresent(Duration.self, forKey: .checkpointInterval) ?? checkpointInterval
        bandwidth = try container.decodeIfPresent(BandwidthRate.self, forKey: .bandwidth)
        sequentialWindow = try container.decodeIfPresent(ByteCount.self, forKey: .sequentialWindow)
        byteLimit = try container.decodeIfPresent(ByteCount.self, forKey: .byteLimit) ?? byteLimit
        keepsRemoteTime = try container.decodeIfPresent(Bool.self, forKey: .keepsRemoteTime) ?? false
        headers = try container.decodeIfPresent(HTTPFields.self, forKey: .headers) ?? headers
        request = try container.decodeIfPresent(RequestOptions.self, forKey: .request) ?? request
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
