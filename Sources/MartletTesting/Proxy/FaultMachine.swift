/// The state machine that decides the faults in the responses of one connection through a fault proxy.
///
/// It depends only on the options, the seed and the connection's number: the same pieces always get the same faults.
struct FaultMachine {
    /// The action for a piece that the origin sent.
    enum Step: Equatable {
        case forward
        case drip
        /// Forwards this number of bytes of the piece, then injects the fault. Later response bytes are not forwarded.
        case strike(InjectedFault, after: Int)
    }

    private struct Response {
        var fault: InjectedFault?
        /// The number of the response's bytes after which the fault is injected.
        var offset: Int
        var passed = 0
    }

    private let options: FaultOptions
    private let isFaulty: Bool
    /// Draws the faults, their positions and the bytes of garbage.
    private var generator: SeededGenerator
    /// The current response; `nil` before the first one, and after the client has sent more bytes.
    private var response: Response?
    private var isFirst = true

    init(options: FaultOptions, seed: UInt64, connection: Int) {
        self.options = options
        isFaulty = connection <= options.faultyConnectionCount
        generator = SeededGenerator(seed: seed, stream: UInt64(connection))
    }

    /// Handles bytes from the client: the origin's next bytes are another response.
    mutating func clientSent() { response = nil }

    var isBetweenResponses: Bool { response == nil }

    /// Handles a piece from the origin.
    /// - Parameters:
    ///   - count: The number of bytes; at least 1.
    ///   - isPause: Whether no more bytes have arrived yet.
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
            if current.offset < current.passed { return .strike(fault, after: max(0, current.offset - passed)) }
            // The response may have ended, so this is the last chance for the fault.
            return isPause && !options.isExact ? .strike(fault, after: current.offset % count) : .forward
        }
    }

    /// Random bytes, at most as many as the options allow.
    mutating func garbage() -> [UInt8] {
        let count = Int.random(in: 1...max(1, options.garbageLimit), using: &generator)
        return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    }

    private mutating func begin() -> Response {
        // Both are always drawn, so that changed rates do not change the positions of other faults.
        let draw = Double.random(in: 0..<100, using: &generator)
        let offset = options.offsets.isEmpty ? 0 : Int.random(in: options.offsets, using: &generator)
        let isDrawn = isFaulty && (options.scope == .responses || isFirst)
        isFirst = false
        return Response(fault: isDrawn ? options.rates.fault(for: draw) : nil, offset: max(0, offset))
    }
}

/// The percentages of responses with each fault.
///
/// A response has at most one fault. If the rates add up to more than 100, the last rates are reduced.
public struct FaultRates: Hashable, Sendable, Codable {
    /// The percentage of ``InjectedFault/reset``.
    public var reset: Double
    /// The percentage of ``InjectedFault/stall``.
    public var stall: Double
    /// The percentage of ``InjectedFault/truncated``.
    public var truncated: Double
    /// The percentage of ``InjectedFault/slow``.
    public var slow: Double
    /// The percentage of ``InjectedFault/garbage``.
    public var garbage: Double

    /// Creates rates in percent, 0...100; 0 by default.
    public init(reset: Double = 0, stall: Double = 0, truncated: Double = 0, slow: Double = 0, garbage: Double = 0) {
        (self.reset, self.stall, self.truncated, self.slow, self.garbage) = (reset, stall, truncated, slow, garbage)
    }

    /// Rates of zero: no faults.
    public static let none = FaultRates()
    /// Rates for a test with all kinds of faults: 1 % reset, 1 % stalled, 1 % truncated, 5 % slow, 1 % garbage.
    public static let stormy = FaultRates(reset: 1, stall: 1, truncated: 1, slow: 5, garbage: 1)

    /// The rate of a fault.
    public subscript(fault: InjectedFault) -> Double { self[keyPath: fault.rate] }

    /// The fault for a draw from 0..<100; `nil` for none.
    func fault(for draw: Double) -> InjectedFault? {
        var bound = 0.0
        return InjectedFault.allCases.first { fault in
            bound += max(0, self[fault])
            return draw < bound
        }
    }
}

/// The options of a fault proxy: the faults, their positions and their sizes.
public struct FaultOptions: Hashable, Sendable {
    /// The unit for which a fault is drawn.
    public enum Scope: String, Hashable, Sendable {
        /// A fault is drawn for each response.
        case responses
        /// A fault is drawn for each connection, and happens in its first response.
        case connections
    }

    /// The percentages of each fault.
    public var rates: FaultRates
    /// The unit for which a fault is drawn; each response by default.
    public var scope = Scope.responses
    /// The range of byte counts after which a reset, stall or truncation happens in a response; 0..<16,384 by default.
    /// If the origin pauses or ends earlier, the fault happens within the bytes that arrived last.
    public var offsets = 0..<(16 << 10)
    /// Whether resets, stalls and truncations happen only at the drawn position. A response that ends before that
    /// position then has no fault. `false` by default.
    public var isExact = false
    /// The number of connections with faults, counted from the first; later ones have none. All by default.
    public var faultyConnectionCount = Int.max
    /// The number of bytes in a piece of a slow response; 1 KiB by default.
    public var dripSize = 1 << 10
    /// The pause between the pieces of a slow response; 5 ms by default.
    public var dripInterval = Duration.milliseconds(5)
    /// The maximum length of garbage, in bytes; 1 KiB by default. The length is random, and at least 1.
    public var garbageLimit = 1 << 10

    /// Creates options with rates.
    public init(_ rates: FaultRates) { self.rates = rates }

    /// The same fault for a percentage of the responses.
    public static func only(_ fault: InjectedFault, percent: Double = 100) -> FaultOptions {
        var rates = FaultRates.none
        rates[keyPath: fault.rate] = percent
        return FaultOptions(rates)
    }
}

/// The counts of a fault proxy so far.
public struct FaultCounts: Hashable, Sendable, CustomStringConvertible {
    /// The number of accepted connections.
    public internal(set) var connections = 0
    /// The number of open connections.
    public internal(set) var openConnections = 0
    /// The number of connections that were reset because their origin could not be reached.
    public internal(set) var unreachable = 0
    /// The number of responses that began, complete or not. All bytes of the origin between two sends of the client
    /// count as one response.
    public internal(set) var responses = 0
    /// The number of times that each fault was injected. Faults that were never injected have no entry.
    public internal(set) var faults: [InjectedFault: Int] = [:]

    /// The number of all faults.
    public var faultCount: Int { faults.values.reduce(0, +) }

    /// The counts in one line:
    /// `1200 responses on 70 connections: 12 reset, 9 stall, 14 truncated, 61 slow, 10 garbage`.
    public var description: String {
        let made = InjectedFault.allCases.map { "\(faults[$0, default: 0]) \($0.rawValue)" }
        return "\(responses) responses on \(connections) connections: \(made.joined(separator: ", "))"
    }
}

/// Random numbers that are the same for the same seed, in every run and on every machine (SplitMix64).
///
/// For reproducible tests and faults; not for secrets.
public struct SeededGenerator: RandomNumberGenerator, Hashable, Sendable {
    private var state: UInt64

    /// Creates a generator; all seeds are equally good.
    public init(seed: UInt64) { state = seed }

    /// Creates one of many generators with a common seed. Their sequences are independent of each other.
    public init(seed: UInt64, stream: UInt64) {
        // Mixed, because states that differ by a multiple of the increment in `next()` give the same numbers, shifted.
        var mixer = SeededGenerator(seed: ~stream)
        state = seed ^ mixer.next()
    }

    /// The next number; all 64 bits are random.
    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

/// A fault that a fault proxy injects into a response.
public enum InjectedFault: String, Hashable, Sendable, CaseIterable, Codable {
    /// Resets both connections after some of the bytes.
    case reset
    /// Sends some of the bytes and then nothing, until the client closes the connection.
    case stall
    /// Closes the connection without a reset after some of the bytes.
    case truncated
    /// Sends all of the bytes, in small pieces.
    case slow
    /// Sends random bytes instead of the response, and closes the connection.
    case garbage

    fileprivate var rate: WritableKeyPath<FaultRates, Double> {
        switch self {
        case .reset: \.reset
        case .stall: \.stall
        case .truncated: \.truncated
        case .slow: \.slow
        case .garbage: \.garbage
        }
    }
}
