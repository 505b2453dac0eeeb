import MartletNetwork
import MartletCore

/// Which requests are on their way and which bodies are being decoded, and for whom; and what is kept of it.
///
/// A *flight* is a request that is put to the session once, for all who ask the same until its answer comes. Behind the
/// answer those who wait for it get a kept value, or wait for a *decoding*: that of their own flight, or one of the same
/// body that runs already. Flights and decodings are known by numbers; a decoding has that of the flight which runs it.
struct DecodingMachine<Value: Sendable>: Sendable {
    private struct Flight {
        /// By what others join it, until its answer comes.
        let sharing: DecodedSharingKey?
        let resource: DecodedResource
        /// How many wait; when none is left it is gone.
        var waiterCount = 1
        /// The decoding whose value it gets; `nil` before the answer.
        var decoding: UInt64?
    }

    private struct Decoding {
        /// What the value is kept as; `nil` where it is not kept, and nobody joins.
        var key: DecodedValueKey?
        /// The flights that get the value; when none is left it is gone.
        var flights: [UInt64]
    }

    /// What becomes of a flight whose answer came.
    enum Answered {
        /// Those who wait get a value that was kept.
        case taken(Value)
        /// They get the value of a decoding that runs.
        case joined
        /// The answer is decoded, for them and for those who join.
        case decode
        /// Nobody waits any more.
        case abandoned
    }

    /// What becomes of one who asks.
    struct Asked: Equatable {
        /// The flight that answers.
        var flight: UInt64
        /// Whether it has to be begun.
        var isNew: Bool
    }

    /// What becomes of a flight for which one waits less.
    struct Left: Equatable {
        /// Whether nobody waits for it any more.
        var isGone = false
        /// The flight to cancel: nobody waits for what it does.
        var cancelled: UInt64?
    }

    private var values: DecodedValues<Value>
    private var flights: [UInt64: Flight] = [:]
    private var flightsToJoin: [DecodedSharingKey: UInt64] = [:]
    private var decodings: [UInt64: Decoding] = [:]
    private var decodingsToJoin: [DecodedValueKey: UInt64] = [:]
    private var fetchCount = 0
    private var lastFlight: UInt64 = 0
    private var endings = RecentEndings()

    /// Nothing kept, nothing on its way.
    init(limit: Int, countLimit: Int) { values = DecodedValues(limit: limit, countLimit: countLimit) }

    /// How many values are kept, and what they cost.
    var kept: (count: Int, cost: Int) { (values.count, values.cost) }
    /// Whether nothing is on its way, and nothing is left of what was.
    var isIdle: Bool {
        flights.isEmpty && flightsToJoin.isEmpty && decodings.isEmpty && decodingsToJoin.isEmpty
            && fetchCount == 0
    }

    /// How many wait in all.
    var waiterCount: Int { flights.values.reduce(0) { $0 + $1.waiterCount } }

    /// Somebody asks.
    /// - Parameter sharing: By what the request is the same as others; `nil` for one that shares with none.
    mutating func asked(_ resource: DecodedResource, sharing: DecodedSharingKey?) -> Asked {
        if let sharing, let number = flightsToJoin[sharing] {
            flights[number]?.waiterCount += 1
            return Asked(flight: number, isNew: false)
        }
        lastFlight += 1
        flights[lastFlight] = Flight(sharing: sharing, resource: resource)
        if let sharing { flightsToJoin[sharing] = lastFlight }
        fetchCount += 1
        return Asked(flight: lastFlight, isNew: true)
    }

    /// The answer of a flight came: from now on whoever asks the same begins another.
    /// - Parameter representation: The body that the response cache has stored; `nil` where it has not.
    mutating func answered(_ number: UInt64, representation: UInt64?) -> Answered {
        guard let flight = flights[number], flight.decoding == nil else { return .abandoned }
        let hasEnded = representation.map { endings.hasEnded($0, since: number) } ?? true
        endFetch(flight)
        let key = representation.map { DecodedValueKey(resource: flight.resource, representation: $0) }
        if let key, let value = values.value(of: key) {
            flights[number] = nil
            return .taken(value)
        }
        if let key, let running = decodingsToJoin[key] {
            decodings[running]?.flights.append(number)
            flights[number]?.decoding = running
            return .joined
        }
        flights[number]?.decoding = number
        decodings[number] = Decoding(key: hasEnded ? nil : key, flights: [number])
        if let key, !hasEnded { decodingsToJoin[key] = number }
        return .decode
    }

    /// A decoding is done.
    /// - Returns: The flights that get the value, and the values that were given up for it.
    mutating func decoded(
        _ number: UInt64, _ value: Value, cost: Int
    ) -> (flights: [UInt64], dropped: [Value]) {
        guard let decoding = end(number) else { return ([], []) }
        for flight in decoding.flights { flights[flight] = nil }
        let dropped = decoding.key.map { values.keep(value, cost: cost, for: $0) }
        return (decoding.flights, dropped ?? [])
    }

    /// A flight, or the decoding that it runs, failed; nothing is kept of it.
    /// - Returns: The flights that get the error.
    mutating func failed(_ number: UInt64) -> [UInt64] {
        if let decoding = end(number) {
            for flight in decoding.flights { flights[flight] = nil }
            return decoding.flights
        }
        guard let flight = flights[number], flight.decoding == nil else { return [] }
        endFetch(flight)
        flights[number] = nil
        return [number]
    }

    /// One of those who wait for a flight does not wait any more.
    mutating func left(_ number: UInt64) -> Left {
        guard var flight = flights[number] else { return Left() }
        flight.waiterCount -= 1
        flights[number] = flight
        guard flight.waiterCount == 0 else { return Left() }
        flights[number] = nil
        guard let running = flight.decoding else {
            endFetch(flight)
            return Left(isGone: true, cancelled: number)
        }
        decodings[running]?.flights.removeAll { $0 == number }
        guard decodings[running]?.flights.isEmpty == true else { return Left(isGone: true) }
        _ = end(running)
        return Left(isGone: true, cancelled: running)
    }

    /// The response cache has a stored body no longer, or holds it for invalid.
    /// - Returns: The values that were given up.
    mutating func ended(_ representation: UInt64) -> [Value] {
        if fetchCount > 0 { endings.note(representation, lastFlight: lastFlight) }
        detach { $0.representation == representation }
        return values.removeAll(of: representation)
    }

    /// What certain requests got is not wanted any more; what is being decoded for them is delivered and not kept.
    /// - Returns: The values that were given up.
    mutating func removed(where isMeant: (DecodedResource) -> Bool) -> [Value] {
        detach { isMeant($0.resource) }
        return values.removeAll(where: isMeant)
    }

    /// Nothing of what there was is wanted any more; what is being decoded is delivered and not kept.
    /// - Returns: The values that were given up.
    mutating func removedAll() -> [Value] {
        detach { _ in true }
        return values.removeAll()
    }

    /// Memory is short, or is not any more.
    /// - Returns: The values that were given up.
    mutating func pressureChanged(to level: MemoryPressure) -> [Value] { values.pressureChanged(to: level) }

    private mutating func endFetch(_ flight: Flight) {
        if let sharing = flight.sharing { flightsToJoin[sharing] = nil }
        fetchCount -= 1
        if fetchCount == 0 { endings.removeAll() }
    }

    private mutating func end(_ number: UInt64) -> Decoding? {
        guard let decoding = decodings.removeValue(forKey: number) else { return nil }
        if let key = decoding.key { decodingsToJoin[key] = nil }
        return decoding
    }

    private mutating func detach(_ isMeant: (DecodedValueKey) -> Bool) {
        for (key, number) in decodingsToJoin where isMeant(key) {
            decodings[number]?.key = nil
            decodingsToJoin[key] = nil
        }
    }
}

/// The bodies whose end was told lately, for requests that were on their way meanwhile and bring one of them.
///
/// It knows the last thousand. One that it forgot only costs room, until it is the one used longest ago: no request is ever
/// answered with it.
struct RecentEndings: Sendable {
    static let limit = 1024

    private var ring: [UInt64] = []
    private var next = 0
    /// The last request that had begun when the body ended.
    private var lastFlights: [UInt64: UInt64] = [:]

    /// Notes an end.
    /// - Parameter lastFlight: The number of the request that began last.
    mutating func note(_ representation: UInt64, lastFlight: UInt64) {
        if lastFlights.updateValue(lastFlight, forKey: representation) != nil { return }
        if ring.count < Self.limit {
            ring.append(representation)
        } else {
            lastFlights[ring[next]] = nil
            ring[next] = representation
            next = (next + 1) % Self.limit
        }
    }

    /// Whether a body ended after a request had begun. One that ended before lives again: a body that was declared invalid
    /// may be found valid (RFC 9111 §4.4).
    func hasEnded(_ representation: UInt64, since flight: UInt64) -> Bool {
        lastFlights[representation].map { flight <= $0 } ?? false
    }

    /// Forgets all, since no request is on its way.
    mutating func removeAll() {
        guard !ring.isEmpty else { return }
        self = RecentEndings()
    }
}
