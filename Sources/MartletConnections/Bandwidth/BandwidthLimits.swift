/// How fast the bodies of a session may go, all together and for each host.
///
/// Counted are the bytes of bodies as they are on the wire, without heads and chunk framing. What is held back is not read,
/// or not written: the peer is held by the TCP window (RFC 9293 §3.8.6), and no idle clock runs meanwhile; the total clock
/// does. Transfers take turns, so that none is starved by another.
public struct BandwidthLimits: Hashable, Sendable, Codable {
    /// All transfers together.
    public var total: BandwidthLimit
    /// The transfers with one host, whatever its ports; each host by itself.
    public var perHost: BandwidthLimit

    /// Limits; none by default.
    public init(total: BandwidthLimit = .none, perHost: BandwidthLimit = .none) {
        self.total = total
        self.perHost = perHost
    }

    /// Nothing is held back.
    public static let none = BandwidthLimits()
}

/// How fast bodies may go either way; a direction without a rate is not held back.
public struct BandwidthLimit: Hashable, Sendable, Codable {
    /// Of bodies that are sent.
    public var up: BandwidthRate?
    /// Of bodies that are received.
    public var down: BandwidthRate?

    /// A limit; none by default.
    public init(up: BandwidthRate? = nil, down: BandwidthRate? = nil) {
        self.up = up
        self.down = down
    }

    /// Nothing is held back.
    public static let none = BandwidthLimit()

    /// The rate of a direction.
    package func rate(_ direction: TransferDirection) -> BandwidthRate? {
        switch direction {
        case .up: up
        case .down: down
        }
    }
}

/// How many bytes may pass in a second, and how many at once.
public struct BandwidthRate: Hashable, Sendable, Codable {
    /// Bytes per second; at least 1, and at most 1 TB. To let nothing pass, a task is paused.
    public var bytesPerSecond: Int

    /// How many bytes may pass at once after a rest; `nil`, the default, for what passes in 50 ms.
    ///
    /// At least what passes in 20 ms, so that a transfer need not be woken more often than that. What is saved up goes on top
    /// of the rate once; afterwards the rate holds.
    public var burst: Int?

    /// A rate.
    public init(bytesPerSecond: Int, burst: Int? = nil) {
        self.bytesPerSecond = bytesPerSecond
        self.burst = burst
    }

    /// So many bytes per second.
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
    var effectiveRate: Double { Double(min(max(1, bytesPerSecond), 1_000_000_000_000)) }

    /// How many bytes are handed out together: what passes in 20 ms, a quarter of a MiB at the most.
    var portion: Int { min(max(1, Int(effectiveRate / 50)), 256 << 10) }

    /// How many bytes can be saved up.
    var effectiveBurst: Double {
        max(
            Double(portion),
            burst.map { Double(min(max(1, $0), 1_000_000_000_000)) } ?? (effectiveRate / 20).rounded(.up))
    }
}

/// Which way a body goes.
package enum TransferDirection: Hashable, Sendable, CaseIterable {
    /// It is sent.
    case up
    /// It is received.
    case down
}
