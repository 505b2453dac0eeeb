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
    mutating func clientSpoke() {
        response = nil
    }

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
        case nil:
            return .forward
        case .slow:
            return .drip
        case .garbage:
            return .strike(.garbage, after: 0)
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
