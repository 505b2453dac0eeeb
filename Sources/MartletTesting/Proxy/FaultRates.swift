/// How many of a hundred responses meet each fault.
///
/// At most one fault happens to a response: where the rates come to more than 100, those named last get what is left.
public struct FaultRates: Hashable, Sendable, Codable {
    /// Percent of ``ProxyFault/reset``.
    public var reset: Double
    /// Percent of ``ProxyFault/stall``.
    public var stall: Double
    /// Percent of ``ProxyFault/truncated``.
    public var truncated: Double
    /// Percent of ``ProxyFault/slow``.
    public var slow: Double
    /// Percent of ``ProxyFault/garbage``.
    public var garbage: Double

    /// Rates in percent, 0...100; those that are not given are 0.
    public init(
        reset: Double = 0, stall: Double = 0, truncated: Double = 0, slow: Double = 0, garbage: Double = 0
    ) {
        self.reset = reset
        self.stall = stall
        self.truncated = truncated
        self.slow = slow
        self.garbage = garbage
    }

    /// No faults.
    public static let none = FaultRates()

    /// The weather of a long day: 1 % reset, 1 % stalled, 1 % truncated, 5 % slow, 1 % garbage.
    public static let stormy = FaultRates(reset: 1, stall: 1, truncated: 1, slow: 5, garbage: 1)

    /// The rate of a fault.
    public subscript(fault: ProxyFault) -> Double {
        switch fault {
        case .reset: reset
        case .stall: stall
        case .truncated: truncated
        case .slow: slow
        case .garbage: garbage
        }
    }

    /// The fault that a draw from 0..<100 stands for; `nil`: none.
    func fault(for draw: Double) -> ProxyFault? {
        var bound = 0.0
        for fault in ProxyFault.allCases {
            bound += max(0, self[fault])
            if draw < bound { return fault }
        }
        return nil
    }
}
