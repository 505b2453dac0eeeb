import MartletCore
import MartletCache
import Synchronization

/// The shared transfers of a session.
final class FlightRegistry: SessionAttachment {
    /// The common properties of requests that share a transfer; each call has its own total timeout.
    struct Key: Hashable {
        fileprivate let stored: CacheKey
        private let values: HashableValues

        init(_ request: CacheRequest, of call: Call, cache: ResponseCache, dialer: Dialer) {
            var (fields, timeouts): ([UInt8], Timeouts) = ([], call.timeouts)
            // The fields of tracing differ in each request. A response that varies with them is not shared.
            let traced = call.supplement?.tracingFields ?? []
            let sent = traced.isEmpty ? request.fields : request.fields.filtered { !traced.contains($0) }
            for index in sent.indices {
                fields += sent.name(at: index)
                fields.append(UInt8(ascii: ":"))
                fields += sent.value(at: index)
                fields.append(0)
            }
            timeouts.total = nil
            let (options, configuration) = (call.options, call.settings.configuration)
            // Views may have different network middleware, which cannot be compared.
            let view = configuration.networkMiddleware.isEmpty ? nil : ObjectIdentifier(call.settings)
            stored = request.key
            values = HashableValues([
                ObjectIdentifier(cache), ObjectIdentifier(dialer), call.proxy?.description ?? "", request.mode, fields,
                timeouts, options.bandwidth, options.bandwidthGroup?.number, call.priority, options.serviceClass, view,
                options.queueOrder ?? configuration.queueOrder, call.supplement?.networkDenial,
                call.supplement?.verification,
            ])
        }
    }

    enum Decision {
        case joined(FlightMember)
        /// The first member of a new transfer, which the caller must start.
        case first(FlightMember)
        /// A transfer with the same key may have ended since the lookup, so the store may have its response now.
        case repeatLookup
    }

    private struct State {
        /// The transfers, by the key of their response, and then by the key of their request.
        var flights: [CacheKey: [Key: CacheFlight]] = [:]
        var endCount: UInt64 = 0
        /// The last transfers that ended, the oldest first.
        var ended: [(key: Key, number: UInt64)] = []
        /// The keys whose last response could not be shared, and the times until which this counts.
        var unshareable: [CacheKey: MonotonicTime] = [:]

        subscript(_ key: Key) -> CacheFlight? {
            get { flights[key.stored]?[key] }
            set {
                flights[key.stored, default: [:]][key] = newValue
                if flights[key.stored]?.isEmpty == true { flights[key.stored] = nil }
            }
        }

        mutating func retire(_ key: Key) {
            self[key] = nil
            endCount += 1
            ended.append((key, endCount))
            if ended.count > FlightRegistry.countLimit { ended.removeFirst() }
        }
    }

    /// The maximum number of ended transfers, and of unshareable keys.
    private static let countLimit = 256
    /// The time for which requests are not shared after a response that could not be shared.
    private static let unshareableTime = Duration.seconds(60)
    /// Shared by requests that start, and transfers that end.
    private let state = Mutex(State())

    /// The number of transfers that have ended: to be read before a lookup in the store.
    var endCount: UInt64 { state.withLock { $0.endCount } }

    /// Whether requests for a key may share a response: not for a while after one that could not be shared.
    func mayShare(_ key: CacheKey) -> Bool {
        state.withLock { state in
            guard !state.unshareable.isEmpty, let end = state.unshareable[key] else { return true }
            guard end <= MonotonicTime.now() else { return false }
            state.unshareable[key] = nil
            return true
        }
    }

    /// Records whether the last response of a key could be shared.
    func note(_ key: CacheKey, isShareable: Bool) {
        state.withLock { state in
            if isShareable {
                if !state.unshareable.isEmpty { state.unshareable[key] = nil }
                return
            }
            // The number of keys is limited, so old keys are removed.
            if state.unshareable.count >= FlightRegistry.countLimit { state.unshareable = [:] }
            state.unshareable[key] = MonotonicTime.now().advanced(by: FlightRegistry.unshareableTime)
        }
    }

    var all: [CacheFlight] { state.withLock { $0.flights.values.flatMap { $0.values } } }

    /// Joins a transfer of a cache key, but not a background validation: the stale response may be served instead.
    /// - Parameter key: Creates the key of the request, which is only needed if there is a transfer of the response.
    func join(_ stored: CacheKey, _ key: () -> Key) -> FlightMember? {
        guard let flights = state.withLock({ $0.flights[stored] }), let flight = flights[key()], !flight.isUnattended,
            flight.isCurrent()
        else { return nil }
        return flight.join()
    }

    /// Joins a transfer, or registers a new one.
    /// - Parameters:
    ///   - key: The key of the request; `nil` for a new transfer that no other request joins.
    ///   - seen: The number of transfers that had ended before the lookup in the store.
    func enter(_ key: Key?, seen: UInt64, make: () -> CacheFlight) -> Decision {
        guard let key else { return make().join().map { .first($0) } ?? .repeatLookup }
        return state.withLock { state in
            if let flight = state[key] {
                if flight.isCurrent(), let member = flight.join() { return .joined(member) }
                // Its response is in the store now, or cannot be used for this request.
                state.retire(key)
                return .repeatLookup
            }
            if state.endCount > seen {
                let isForgotten = state.ended.first.map { $0.number > seen + 1 } ?? true
                if isForgotten || state.ended.contains(where: { $0.number > seen && $0.key == key }) {
                    return .repeatLookup
                }
            }
            let flight = make()
            guard let member = flight.join() else { return .repeatLookup }
            state[key] = flight
            return .first(member)
        }
    }

    /// Registers a transfer without members, unless there is one for the key.
    func startDetached(_ key: Key, make: () -> CacheFlight) -> CacheFlight? {
        state.withLock { state in
            guard state[key] == nil else { return nil }
            let flight = make()
            state[key] = flight
            return flight
        }
    }

    /// Removes a transfer that has ended.
    func end(_ key: Key, _ flight: CacheFlight) {
        state.withLock { state in if state[key] === flight { state.retire(key) } }
    }

    // As an attachment, it changes no limits, and does nothing at the end of the session.
    func limits(_ limits: PoolLimits) -> PoolLimits { limits }
    func end() {}
}

/// Values that are compared and hashed together, position by position.
struct HashableValues: Hashable, Sendable {
    private let values: [any Hashable & Sendable]

    init(_ values: [any Hashable & Sendable]) { self.values = values }

    static func == (left: HashableValues, right: HashableValues) -> Bool {
        left.values.map { AnyHashable($0) } == right.values.map { AnyHashable($0) }
    }

    func hash(into hasher: inout Hasher) { for value in values { value.hash(into: &hasher) } }
}
