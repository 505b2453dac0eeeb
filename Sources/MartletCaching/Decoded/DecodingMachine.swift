import MartletCache
import MartletConditions
import MartletCore

/// The state machine of requests and decodings, and of the callers that share them; it also holds the stored values.
///
/// A *flight* is a request that is sent once for all callers with identical requests. After its response these callers
/// get a stored value, or wait for a *decoding* of its body, which may already run. A decoding has the number of the
/// flight that started it.
struct DecodingMachine<Value: Sendable>: Sendable {
    private struct Flight {
        /// The key by which callers join it, until its response is received.
        let sharing: DecodedSharingKey?
        let resource: DecodedResource
        /// The number of callers. A flight without callers is removed.
        var waiterCount = 1
        /// The decoding that gives its value; `nil` before the response.
        var decoding: UInt64?
    }

    /// The key of the value, and the flights that get it. With a `nil` key the value is not stored, and no flight
    /// can join. A decoding without flights is removed.
    private typealias Decoding = (key: DecodedValueKey?, flights: [UInt64])

    /// The action after the response to a flight.
    enum ResponseAction {
        /// The flight's callers get a stored value.
        case taken(Value)
        /// The callers get the value of a running decoding.
        case joined
        /// The response is decoded, for the callers and for flights that join.
        case decode
        case abandoned
    }

    /// The result of a call.
    struct RequestAction: Equatable {
        var flight: UInt64
        /// Whether the flight has to be started.
        var isNew: Bool
    }

    /// The result of a cancelled call.
    struct CancellationAction: Equatable {
        /// Whether the flight has lost its last caller.
        var isGone = false
        /// The flight to cancel, since no caller waits for it any more.
        var cancelled: UInt64?
    }

    private var values: DecodedValues<Value>
    private var flights: [UInt64: Flight] = [:]
    private var flightsToJoin: [DecodedSharingKey: UInt64] = [:]
    private var decodings: [UInt64: Decoding] = [:]
    private var decodingsToJoin: [DecodedValueKey: UInt64] = [:]
    private var fetchCount = 0
    private var lastFlight: UInt64 = 0
    /// By removed body, the last flight that had started at that time. If this flight or an earlier one gets the body,
    /// its value is not stored. If a body is dropped from this table, such a value only occupies memory.
    private var removals = RecentKeys<UInt64, UInt64>()

    init(limit: Int, countLimit: Int) { values = DecodedValues(limit: limit, countLimit: countLimit) }

    /// The number of stored values, and their cost.
    var kept: (count: Int, cost: Int) { (values.count, values.cost) }
    /// Whether there are no flights, no decodings, and no data of earlier ones.
    var isIdle: Bool {
        flights.isEmpty && flightsToJoin.isEmpty && decodings.isEmpty && decodingsToJoin.isEmpty && fetchCount == 0
    }

    var waiterCount: Int { flights.values.reduce(0) { $0 + $1.waiterCount } }

    /// Adds a caller.
    /// - Parameter sharing: The key of identical requests; `nil` for a request that is not shared.
    mutating func valueRequested(_ resource: DecodedResource, sharing: DecodedSharingKey?) -> RequestAction {
        if let sharing, let number = flightsToJoin[sharing] {
            flights[number]?.waiterCount += 1
            return RequestAction(flight: number, isNew: false)
        }
        lastFlight += 1
        flights[lastFlight] = Flight(sharing: sharing, resource: resource)
        if let sharing { flightsToJoin[sharing] = lastFlight }
        fetchCount += 1
        return RequestAction(flight: lastFlight, isNew: true)
    }

    /// Handles the response to a flight. Later callers start another flight.
    /// - Parameter representation: The body that the response cache has stored; `nil` if it is not stored.
    mutating func responseReceived(_ number: UInt64, representation: UInt64?) -> ResponseAction {
        guard let flight = flights[number], flight.decoding == nil else { return .abandoned }
        // A body that was removed before the flight started may be valid again (RFC 9111 §4.4).
        let hasEnded = representation.map { removals[$0].map { number <= $0 } ?? false } ?? true
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
        decodings[number] = (key: hasEnded ? nil : key, flights: [number])
        if let key, !hasEnded { decodingsToJoin[key] = number }
        return .decode
    }

    /// Stores the value of a decoding.
    /// - Returns: The flights that get the value, and the values that were evicted for it.
    mutating func decoded(_ number: UInt64, _ value: Value, cost: Int) -> (flights: [UInt64], dropped: [Value]) {
        guard let decoding = end(number) else { return ([], []) }
        for flight in decoding.flights { flights[flight] = nil }
        let dropped = decoding.key.map { values.keep(value, cost: cost, for: $0) }
        return (decoding.flights, dropped ?? [])
    }

    /// Handles the failure of a flight, or of the decoding that it runs.
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

    /// Removes a caller of a flight.
    mutating func waiterCancelled(_ number: UInt64) -> CancellationAction {
        guard var flight = flights[number] else { return CancellationAction() }
        flight.waiterCount -= 1
        flights[number] = flight.waiterCount == 0 ? nil : flight
        guard flight.waiterCount == 0 else { return CancellationAction() }
        guard let running = flight.decoding else {
            endFetch(flight)
            return CancellationAction(isGone: true, cancelled: number)
        }
        decodings[running]?.flights.removeAll { $0 == number }
        guard decodings[running]?.flights.isEmpty == true else { return CancellationAction(isGone: true) }
        _ = end(running)
        return CancellationAction(isGone: true, cancelled: running)
    }

    /// Removes the values of a body that the response cache no longer stores, or considers invalid.
    /// - Returns: The removed values.
    mutating func ended(_ representation: UInt64) -> [Value] {
        if fetchCount > 0 { removals.update(lastFlight, for: representation) }
        detach { $0.representation == representation }
        return values.removeAll(of: representation)
    }

    /// Removes the values of resources that pass a test; those that are being decoded are delivered and not stored.
    /// - Returns: The removed values.
    mutating func removed(where predicate: (DecodedResource) -> Bool) -> [Value] {
        detach { predicate($0.resource) }
        return values.removeAll(where: predicate)
    }

    /// Sets the pressure on memory.
    /// - Returns: The removed values.
    mutating func pressureChanged(to level: MemoryPressure) -> [Value] { values.pressureChanged(to: level) }

    private mutating func endFetch(_ flight: Flight) {
        if let sharing = flight.sharing { flightsToJoin[sharing] = nil }
        fetchCount -= 1
        if fetchCount == 0 { removals = RecentKeys() }
    }

    private mutating func end(_ number: UInt64) -> Decoding? {
        guard let decoding = decodings.removeValue(forKey: number) else { return nil }
        if let key = decoding.key { decodingsToJoin[key] = nil }
        return decoding
    }

    private mutating func detach(_ predicate: (DecodedValueKey) -> Bool) {
        for (key, number) in decodingsToJoin where predicate(key) {
            decodings[number]?.key = nil
            decodingsToJoin[key] = nil
        }
    }
}
