public import MartletConnections

/// How much a ``DownloadManager`` does at once. Numbers below 1 count as 1.
public struct DownloadLimits: Hashable, Sendable, Codable {
    /// How many files are downloaded at once; 3 by default.
    public var files: Int
    /// How many of them from one host; 2 by default. A host is a name and a port here, and for the connections.
    public var perHost: Int
    /// How many connections downloads have to one host, all together; 6 by default, as browsers have. It keeps many files
    /// of many segments from looking like an attack.
    public var connectionsPerHost: Int
    /// How fast all bodies of the session may come together; `nil`, the default, for what the session's configuration says.
    public var bandwidth: BandwidthRate?
    /// How fast all bodies of the session may come from one host, whatever its ports; `nil`, the default, for what the
    /// session's configuration says.
    public var bandwidthPerHost: BandwidthRate?

    /// Limits; see the properties for what they are by default.
    public init(
        files: Int = 3, perHost: Int = 2, connectionsPerHost: Int = 6, bandwidth: BandwidthRate? = nil,
        bandwidthPerHost: BandwidthRate? = nil
    ) {
        self.files = files
        self.perHost = perHost
        self.connectionsPerHost = connectionsPerHost
        self.bandwidth = bandwidth
        self.bandwidthPerHost = bandwidthPerHost
    }
}
