/// What there is to show of one download, or of all of them.
struct DownloadRow: Hashable, Sendable {
    /// What it is doing, where it does not just receive.
    enum Phase: Hashable, Sendable {
        /// Nothing has come yet.
        case starting
        /// Bytes come, or should come.
        case receiving
        /// The next try comes after so long, after so many failures in a row.
        case waiting(Duration, failures: Int)
        /// All is there, and is compared with its checksums.
        case verifying
    }

    /// After how long without a byte it is shown as stalled.
    static let stallLimit = Duration.seconds(3)

    /// Its name; fit for no terminal yet.
    var name: String
    /// What it is doing.
    var phase = Phase.receiving
    /// Bytes of the file that are there.
    var bytes: UInt64 = 0
    /// Bytes of the file in all; `nil` while that is not known.
    var total: UInt64?
    /// Bytes that earlier runs left.
    var resumed: UInt64 = 0
    /// Bytes a second.
    var rate = 0.0
    /// For how long nothing has come.
    var stall = Duration.zero
    /// Connections that receive.
    var connections = 0

    /// Whether nothing comes that should.
    var isStalled: Bool { phase == .receiving && stall >= DownloadRow.stallLimit }

    /// How much is there, 0 to 1; `nil` while the whole is not known.
    var fraction: Double? {
        guard let total else { return nil }
        return total == 0 ? 1 : min(1, Double(bytes) / Double(total))
    }

    /// How long the rest takes at the present rate; `nil` where that cannot be told, or nothing comes.
    var timeLeft: Duration? {
        guard let total, phase == .receiving, !isStalled, rate >= 1 else { return nil }
        return .seconds(min(1e8, Double(total - min(total, bytes)) / rate))
    }
}
