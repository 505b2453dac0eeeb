/// Decides what happens to the responses of one connection through a fault proxy.
///
/// A function of the options, the seed and the connection's number: the same pieces meet the same faults again.
struct FaultMachine {
    /// What to do with a piece that the origin sent.
    enum Step: Equatable {
        /// Pass it on.
        case forward
        /// Pass it on slowly.
        case drip
        /// Pass on so many bytes of it, then make the fault. Nothing follows on the connection.
        case strike(ProxyFault, after: Int)
    }

    private struct Response {
        /// The fault it meets, if it has not struck yet.
        var fault: ProxyFault?
        /// Behind how many bytes the fault strikes.
        var place: Int
        /// How many bytes of it have passed.
        var passed = 0
    }

    private let options: FaultOptions
    /// Whether the connection is one of those that meet faults.
    private let isFaulty: Bool
    /// Draws the faults and their places; garbage too is taken from it.
    private(set) var generator: SeededGenerator
    /// The response under way; `nil` before the first, and once the client has spoken again.
    private var response: Response?
    private var isFirst = true

    init(options: FaultOptions, seed: UInt64, connection: Int) {
        self.options = options
        isFaulty = connection <= options.faultyConnectionCount
        generator = SeededGenerator(seed: seed, stream: UInt64(connection))
    }

    /// The client has sent bytes: what the origin sends next is another response.
    mutating func clientSpoke() { response = nil }

    /// Whether the next piece begins a response.
    var isBetweenResponses: Bool { response == nil }

    /// The origin has sent a piece.
    /// - Parameters:
    ///   - count: How many bytes; at least 1.
    ///   - isPause: Whether nothing more has come yet.
    mutating func originSent(_ count: Int, isPause: Bool) -> Step {
        var current = response ?? begin()
        defer { response = current }
        let passed = current.passed
        current.passed += count
        switch current.fault {
        case nil: return .forward
        case .slow: return .drip
        case .garbage: return .strike(.garbage, after: 0)
        case .some(let fault):
            if current.place < current.passed { return .strike(fault, after: max(0, current.place - passed)) }
            // It may be over: the fault has to strike now, or not at all.
            return isPause && !options.isExact ? .strike(fault, after: current.place % count) : .forward
        }
    }

    /// So many random bytes as the options allow.
    mutating func garbage() -> [UInt8] {
        let count = Int.random(in: 1...max(1, options.garbageLimit), using: &generator)
        return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    }

    private mutating func begin() -> Response {
        // Drawn whether or not they are used, so that changed rates leave the places of other faults where they were.
        let draw = Double.random(in: 0..<100, using: &generator)
        let place = options.reach.isEmpty ? 0 : Int.random(in: options.reach, using: &generator)
        let isDrawn = isFaulty && (options.scope == .responses || isFirst)
        isFirst = false
        return Response(fault: isDrawn ? options.rates.fault(for: draw) : nil, place: max(0, place))
    }
}

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
    public init(_ rates: FaultRates) { self.rates = rates }

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

/// What a fault proxy has done so far.
public struct FaultCounts: Hashable, Sendable, CustomStringConvertible {
    /// Connections accepted.
    public internal(set) var connections = 0
    /// Connections open now.
    public internal(set) var openConnections = 0
    /// Connections whose origin could not be reached; they were reset.
    public internal(set) var unreachable = 0
    /// Responses that began to pass, whole or not. A response is what the origin sends until the client speaks again.
    public internal(set) var responses = 0
    /// How often each fault was made; those that were not are missing.
    public internal(set) var faults: [ProxyFault: Int] = [:]

    /// All faults together.
    public var faultCount: Int { faults.values.reduce(0, +) }

    /// One line: `1200 responses on 70 connections: 12 reset, 9 stall, 14 truncated, 61 slow, 10 garbage`.
    public var description: String {
        let made = ProxyFault.allCases.map { "\(faults[$0, default: 0]) \($0.rawValue)" }
        return "\(responses) responses on \(connections) connections: \(made.joined(separator: ", "))"
    }
}

/// Random numbers that are the same for the same seed, in every run and on every machine (SplitMix64).
///
/// For tests and faults that are to be repeated; not for anything secret.
public struct SeededGenerator: RandomNumberGenerator, Hashable, Sendable {
    private var state: UInt64

    /// A generator; every seed is as good as any other.
    public init(seed: UInt64) { state = seed }

    /// One of many generators with a common seed, whose numbers have nothing to do with each other's.
    public init(seed: UInt64, stream: UInt64) {
        // Seeds that follow each other give the same numbers, moved by one: the stream's number is mixed first.
        var mixer = SeededGenerator(seed: ~stream)
        state = seed ^ mixer.next()
    }

    /// The next number; all 64 bits are fit for use.
    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

/// What a fault proxy does to a response.
public enum ProxyFault: String, Hashable, Sendable, CaseIterable, Codable {
    /// Resets both connections behind some of its bytes.
    case reset
    /// Sends some of its bytes and then nothing, for as long as the client stays.
    case stall
    /// Ends the connection in order behind some of its bytes.
    case truncated
    /// Sends all of it, a little at a time.
    case slow
    /// Sends random bytes in its place, and ends the connection.
    case garbage
}
