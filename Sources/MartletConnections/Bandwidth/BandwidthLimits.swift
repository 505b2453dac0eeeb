/// The limits of the bandwidth of bodies in a session, all together and for each host.
///
/// They count the bytes of bodies as they are on the wire, without heads and chunk framing. Bytes that are held back are not
/// read, or not written: the peer is held by the TCP window (RFC 9293 §3.8.6), and no idle clock runs meanwhile; the total
/// clock does. Transfers take turns, so that none is starved by another.
public struct BandwidthLimits: Hashable, Sendable, Codable {
    /// The limit of all transfers together.
    public var total: BandwidthLimit
    /// The limit of the transfers with one host, whatever its ports; each host by itself.
    public var perHost: BandwidthLimit

    /// Creates limits; none by default.
    public init(total: BandwidthLimit = .none, perHost: BandwidthLimit = .none) {
        self.total = total
        self.perHost = perHost
    }

    /// No limit.
    public static let none = BandwidthLimits()
}

/// The rates of bodies in both directions; a direction without a rate is not held back.
public struct BandwidthLimit: Hashable, Sendable, Codable {
    /// The rate of bodies that are sent.
    public var upload: BandwidthRate?
    /// The rate of bodies that are received.
    public var download: BandwidthRate?

    /// Creates a limit; none by default.
    public init(upload: BandwidthRate? = nil, download: BandwidthRate? = nil) {
        self.upload = upload
        self.download = download
    }

    /// No limit.
    public static let none = BandwidthLimit()

    /// The rate of a direction.
    package func rate(_ direction: TransferDirection) -> BandwidthRate? {
        switch direction {
        case .up: upload
        case .down: download
        }
    }
}

/// The number of bytes that may pass in a second, and at once.
public struct BandwidthRate: Hashable, Sendable, Codable {
    /// Bytes per second; at least 1, and at most 1 TB. To let nothing pass, a task is paused.
    public var bytesPerSecond: Int

    /// The number of bytes that may pass at once after a rest; `nil`, the default, for those of 50 ms.
    ///
    /// At least those of 20 ms, so that a transfer need not be woken more often than that. Saved bytes exceed the rate once;
    /// afterwards the rate holds.
    public var burst: Int?

    /// Creates a rate.
    public init(bytesPerSecond: Int, burst: Int? = nil) {
        self.bytesPerSecond = bytesPerSecond
        self.burst = burst
    }

    /// The rate of this number of bytes per second.
    public static func bytesPerSecond(_ count: Int) -> BandwidthRate { BandwidthRate(bytesPerSecond: count) }

    private enum CodingKeys: String, CodingKey {
        case bytesPerSecond
        case burst
    }

    /// Reads a rate.
    /// - Throws: `DecodingError.dataCorrupted` for numbers below 1.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        bytesPerSecond = try container.decode(Int.self, forKey: .bytesPerSecond)
        burst = try container.decodeIfPresent(Int.self, forKey: .burst)
        guard bytesPerSecond >= 1, burst ?? 1 >= 1 else {
            throw DecodingError.dataCorruptedError(
                forKey: .bytesPerSecond, in: container, debugDescription: "a rate must be at least 1")
        }
    }

    /// The rate within its bounds.
    var effectiveRate: Double { Self.bounded(bytesPerSecond) }

    /// The number of bytes that are handed out together: those of 20 ms, at most a quarter of a MiB.
    var portion: Int { min(max(1, Int(effectiveRate / 50)), 256 << 10) }

    /// The number of bytes that can be saved up.
    var effectiveBurst: Double {
        max(Double(portion), burst.map(Self.bounded) ?? (effectiveRate / 20).rounded(.up))
    }

    private static func bounded(_ count: Int) -> Double { Double(min(max(1, count), 1_000_000_000_000)) }
}

/// The direction of a body.
package enum TransferDirection: Int, Sendable, CaseIterable {
    /// It is sent.
    case up
    /// It is received.
    case down
}
