/// Which faults a fault proxy makes, where and how.
public struct FaultOptions: Hashable, Sendable {
    /// What a fault is drawn for.
    public enum Scope: String, Hashable, Sendable {
        /// Each response.
        case responses
        /// Each connection; the fault happens to its first response.
        case connections
    }

    /// How many of a hundred meet each fault.
    public var rates: FaultRates
    /// What is drawn for; each response by default.
    public var scope = Scope.responses
    /// Resets, stalls and truncations happen behind so many bytes of a response, drawn from this range; where the origin
    /// pauses or ends before, somewhere in its last bytes. 0..<16,384 by default.
    public var reach = 0..<(16 << 10)
    /// Whether resets, stalls and truncations happen at their place alone: a response that pauses or ends before it passes
    /// whole. `false` by default.
    public var isExact = false
    /// How many connections meet faults, counted from the first; those behind them pass. All by default.
    public var faultyConnectionCount = Int.max
    /// How many bytes of a slow response are sent at a time; 1 KiB by default.
    public var dripSize = 1 << 10
    /// How long the proxy pauses in between; 5 ms by default.
    public var dripInterval = Duration.milliseconds(5)
    /// How long garbage may be, in bytes; drawn from 1 to this. 1 KiB by default.
    public var garbageLimit = 1 << 10

    /// Options with these rates.
    public init(_ rates: FaultRates) {
        self.rates = rates
    }

    /// The same fault for every response, as far as its percentage says.
    public static func only(_ fault: ProxyFault, percent: Double = 100) -> FaultOptions {
        var rates = FaultRates.none
        switch fault {
        case .reset: rates.reset = percent
        case .stall: rates.stall = percent
        case .truncated: rates.truncated = percent
        case .slow: rates.slow = percent
        case .garbage: rates.garbage = percent
        }
        return FaultOptions(rates)
    }
}
