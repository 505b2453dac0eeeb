import MartletCore
import MartletCache
import MartletConnections
import MartletTransport
import MartletWire
import Synchronization

/// The shared transfers of a session, by what was asked for.
final class FlightRegistry: Sendable {
    /// What requests must have in common to be answered by one: everything that an answer may be chosen by, and how it is
    /// to come.
    struct Key: Hashable {
        let cache, dialer: ObjectIdentifier
        let proxy: String
        let key: CacheKey
        let mode: CacheMode
        let pace: FlightPace
        /// All fields that are sent, as one text.
        let fields: [UInt8]

        init(
            _ request: CacheRequest, cache: ResponseCache, dialer: AnyObject, proxy: String?, pace: FlightPace
        ) {
            self.cache = ObjectIdentifier(cache)
            self.dialer = ObjectIdentifier(dialer)
            self.proxy = proxy ?? ""
            key = request.key
            mode = request.mode
            self.pace = pace
            var fields: [UInt8] = []
            for index in request.fields.indices {
                fields += request.fields.name(at: index)
                fields.append(UInt8(ascii: ":"))
                fields += request.fields.value(at: index)
                fields.append(0)
            }
            self.fields = fields
        }
    }

    /// What to do about a request.
    enum Place {
        /// It takes part in what is under way.
        case joined(FlightMember)
        /// It is the first, and begins the transfer.
        case first(FlightMember)
        /// One like it ended since it looked into the store, where the answer may be now.
        case lookAgain
    }

    private struct State {
        /// By what is stored, and then by all that was asked for.
        var flights: [CacheKey: [Key: CacheFlight]] = [:]
        var endCount: UInt64 = 0
        /// Those that ended last, the oldest first.
        var ended: [(key: Key, number: UInt64)] = []

        /// What the last response was not shareable for, and until when requests for it do not wait for each other.
        var unshareable: [CacheKey: MonotonicTime] = [:]

        /// All that are under way.
        var all: [CacheFlight] { flights.values.flatMap { $0.values } }

        subscript(_ key: Key) -> CacheFlight? {
            get { flights[key.key]?[key] }
            set {
                flights[key.key, default: [:]][key] = newValue
                if flights[key.key]?.isEmpty == true { flights[key.key] = nil }
            }
        }

        mutating func retire(_ key: Key) {
            self[key] = nil
            endCount += 1
            ended.append((key, endCount))
            if ended.count > FlightRegistry.memory { ended.removeFirst() }
        }
    }

    /// How many ended ones are remembered, and how many responses that were not shareable.
    private static let memory = 256
    /// The time for which requests do not wait for each other after a response that was not shareable.
    private static let unshareableTime = Duration.seconds(60)

    /// Guards the above: requests that begin, and transfers that end.
    private let state = Mutex(State())

    /// How many have ended: to be asked before looking into the store.
    var endCount: UInt64 { state.withLock { $0.endCount } }

    /// Whether requests for a resource may wait for one response: not for a while after one that was not shareable, since each
    /// would wait for the head of another's response and then ask for itself.
    func mayShare(_ key: CacheKey) -> Bool {
        state.withLock { state in
            guard !state.unshareable.isEmpty, let end = state.unshareable[key] else { return true }
            guard end <= MonotonicTime.now() else { return false }
            state.unshareable[key] = nil
            return true
        }
    }

    /// Notes whether the last response of a resource could be shared.
    func note(_ key: CacheKey, isShareable: Bool) {
        state.withLock { state in
            guard !isShareable else {
                if !state.unshareable.isEmpty { state.unshareable[key] = nil }
                return
            }
            // Of very many at once none is remembered for long.
            if state.unshareable.count >= FlightRegistry.memory { state.unshareable = [:] }
            state.unshareable[key] = MonotonicTime.now().advanced(by: FlightRegistry.unshareableTime)
        }
    }

    /// How many requests take part in what is under way.
    var memberCount: Int { state.withLock { $0.all }.reduce(0) { $0 + $1.memberCount } }

    /// How many bytes of bodies on their way are held in memory.
    var heldByteCount: Int { state.withLock { $0.all }.reduce(0) { $0 + $1.heldByteCount } }

    /// Takes part in what is under way already, if anything is that others wait for, too.
    ///
    /// What validates something behind the backs of those who have it is left alone: whoever has not looked yet may have it
    /// as well.
    /// - Parameters:
    ///   - stored: What the answer is stored under.
    ///   - key: Makes all that is asked for: only where anything of the kind is under way.
    func join(_ stored: CacheKey, _ key: () -> Key) -> FlightMember? {
        guard let flights = state.withLock({ $0.flights[stored] }), let flight = flights[key()],
            !flight.isUnattended, flight.isCurrent()
        else { return nil }
        return flight.join()
    }

    /// Takes part in what is under way, or begins it.
    /// - Parameters:
    ///   - seen: How many had ended before the store was looked into.
    ///   - make: Makes a transfer, which the caller is to start.
    func enter(_ key: Key, seen: UInt64, make: () -> CacheFlight) -> Place {
        state.withLock { state in
            if let flight = state[key] {
                if flight.isCurrent(), let member = flight.join() { return .joined(member) }
                // What came of it is in the store now, or it is of no use to who asks now.
                state.retire(key)
                return .lookAgain
            }
            if state.endCount > seen {
                let isForgotten = state.ended.first.map { $0.number > seen + 1 } ?? true
                if isForgotten || state.ended.contains(where: { $0.number > seen && $0.key == key }) {
                    return .lookAgain
                }
            }
            let flight = make()
            guard let member = flight.join() else { return .lookAgain }
            state[key] = flight
            return .first(member)
        }
    }

    /// Begins a transfer that nobody waits for, unless one like it is under way.
    func enterUnattended(_ key: Key, make: () -> CacheFlight) -> CacheFlight? {
        state.withLock { state in
            guard state[key] == nil else { return nil }
            let flight = make()
            state[key] = flight
            return flight
        }
    }

    /// Notes the end of a transfer.
    func end(_ key: Key, _ flight: CacheFlight) {
        state.withLock { state in
            guard state[key] === flight else { return }
            state.retire(key)
        }
    }
}

/// Lets an exchange be paused by whoever takes it over, once somebody does.
final class FlightGate: TransferGate {
    /// Set when the exchange is taken over, read by its tasks.
    private let holder = Mutex<TransferControl?>(nil)

    /// Hands the exchange over to a call.
    func pass(to control: TransferControl) { holder.withLock { $0 = control } }

    var isPaused: Bool { holder.withLock { $0 }?.isPaused ?? false }

    func waitWhilePaused(until deadline: MonotonicTime, on loop: EventLoop) async {
        await holder.withLock { $0 }?.waitWhilePaused(until: deadline, on: loop)
    }
}
