import MartletContent
import MartletURL
public import MartletNetwork
public import MartletCore
public import HTTPTypes
import MartletTransport
import Synchronization

/// Values that are decoded from the bodies of answers (thumbnails, models), kept in memory and bounded by what they cost.
///
/// ```swift
/// let thumbnails = DecodedCache<Thumbnail>(session: session, cost: { $0.byteCount }) { exchange in
///     try await Thumbnail(decoding: exchange.body, width: 200)
/// }
/// let picture = try await thumbnails.value(for: "https://example.com/a.jpg")
/// ```
///
/// Each request goes through the session, whose response cache decides whether what it stores may be used. Where the body
/// is the one that a value was decoded from, that value is taken; else it is decoded. A value is kept as long as the
/// response cache stores its body and there is room for it; an answer that is not stored is decoded for those who wait for
/// it, and its value is not kept.
///
/// GET and HEAD requests that are the same (URL, fields and all of their options) are put to the session once for all who
/// ask until the answer comes, and a body is decoded once for all who wait for its value. Cancelling a task that waits
/// throws `CancellationError` there at once and leaves the others alone; with the last one the request, or the decoding, is
/// cancelled. Requests with a validator, a proxy or an authentication handler of their own are never taken for the same,
/// since closures cannot be compared; nor are those of different priorities, so that an urgent one does not wait behind
/// one that is not.
///
/// What is decoded must have the status 2xx. Decoding runs on the concurrent pool, in a task of the cache's own; it must
/// not ask this cache for the same request, for it would wait for itself. An error of it goes to all who wait, and
/// nothing is kept: the next request decodes anew.
///
/// A cache is for one kind of value. For thumbnails of two sizes there are two, each with a limit of its own: one body in
/// the session's response cache serves both.
///
/// While memory is short (``MemoryPressure/warning``) values are kept up to half of the limits, while it is very short none.
public final class DecodedCache<Value: Sendable>: Sendable {
    /// Makes a value of an answer whose status is 2xx.
    public typealias Decode = @Sendable (HTTPExchange) async throws -> Value
    typealias Fetch = @Sendable (DecodedCall) async throws -> HTTPExchange

    private struct State {
        var machine: DecodingMachine<Value>
        /// What those who wait for a flight get, by its number.
        var outcomes: [UInt64: Outcome<Value>] = [:]
        /// What runs flights and their decodings, by number, until it ends or is cancelled.
        var tasks: [UInt64: Task<Void, Never>] = [:]
        /// Values of bodies that have ended, until a worker releases them.
        var ended: [Value] = []
        /// What follows the pressure on memory.
        var follower: Task<Void, Never>?
    }

    /// Guards the above. No code of the user's runs under it: neither decoding, nor costs, nor the end of a value.
    private let state: Mutex<State>
    private let fetch: Fetch
    private let costOfValue: @Sendable (Value) -> Int
    private let decode: Decode

    /// What the values may cost in all.
    public let limit: ByteCount
    /// How many values there may be.
    public let countLimit: Int

    /// A cache of what a closure decodes.
    ///
    /// - Parameters:
    ///   - session: Where requests are made.
    ///   - limit: What the values may cost in all; those used longest ago are given up for others. One that costs more is
    ///     delivered and not kept. With 0 nothing is kept.
    ///   - countLimit: How many values there may be, whatever they cost; 10,000 by default. With 0 nothing is kept.
    ///   - memoryPressure: What tells that memory is short; `nil` for nothing.
    ///   - cost: What a value costs, mostly its size in bytes; below 0 counts as 0. It is asked once for each value.
    ///   - decode: Makes a value of an answer.
    public convenience init(
        session: HTTPSession, limit: ByteCount = .mebibytes(64), countLimit: Int = 10_000,
        memoryPressure: MemoryPressureSource? = .system, cost: @escaping @Sendable (Value) -> Int,
        decode: @escaping Decode
    ) {
        self.init(
            fetch: { try await $0.send(through: session) }, limit: limit, countLimit: countLimit,
            memoryPressure: memoryPressure, cost: cost, decode: decode)
        session.configuration.cache?.whenBodyEnds { [weak self] representation in
            self?.representationEnded(representation)
            return self != nil
        }
    }

    /// A cache of what a ``ResponseDecoder`` makes, of content types that it takes; else as
    /// ``init(session:limit:countLimit:memoryPressure:cost:decode:)``.
    public convenience init<Decoder: ResponseDecoder>(
        session: HTTPSession, using decoder: Decoder, limit: ByteCount = .mebibytes(64),
        countLimit: Int = 10_000, memoryPressure: MemoryPressureSource? = .system,
        cost: @escaping @Sendable (Value) -> Int
    ) where Decoder.Output == Value {
        self.init(
            session: session, limit: limit, countLimit: countLimit, memoryPressure: memoryPressure, cost: cost
        ) { try $0.decode(using: decoder) }
    }

    init(
        fetch: @escaping Fetch, limit: ByteCount, countLimit: Int = 10_000,
        memoryPressure: MemoryPressureSource? = nil, cost: @escaping @Sendable (Value) -> Int,
        decode: @escaping Decode
    ) {
        self.fetch = fetch
        self.limit = limit
        self.countLimit = max(0, countLimit)
        costOfValue = cost
        self.decode = decode
        state = Mutex(State(machine: DecodingMachine(limit: limit.bytes, countLimit: countLimit)))
        guard let memoryPressure else { return }
        // Unstructured, since it goes on as long as the cache is there, which it does not keep.
        let follower = Task { [weak self] in
            for await level in memoryPressure { self?.pressureChanged(to: level) }
        }
        state.withLock { $0.follower = follower }
    }

    deinit { state.withLock { $0.follower }?.cancel() }

    // MARK: Values

    /// How many values are kept.
    public var count: Int { state.withLock { $0.machine.kept.count } }

    /// What the kept values cost in all; never above ``limit``.
    public var cost: Int { state.withLock { $0.machine.kept.cost } }

    /// How many wait for a value.
    var waiterCount: Int { state.withLock { $0.machine.waiterCount } }
    /// How many requests and decodings run that were not cancelled.
    var taskCount: Int { state.withLock { $0.tasks.count } }

    /// The value of what is at a URL.
    ///
    /// - Parameters:
    ///   - url: Where it is; a name and a password in it are for its origin.
    ///   - headers: Fields of the request.
    ///   - options: Its ``RequestOptions/priority`` and ``RequestOptions/order`` say which request goes first while
    ///     connections are busy.
    /// - Throws: An ``HTTPError``, `.unacceptableStatus` for a status that is not 2xx among it; what decoding throws, as it
    ///   is; `CancellationError`.
    public func value(
        for url: String, headers: HTTPFields = HTTPFields(), options: RequestOptions = RequestOptions()
    ) async throws -> Value { try await value(of: try DecodedCall(url, headers: headers, options: options)) }

    /// The value of what a request asks for; else as ``value(for:headers:options:)``.
    public func value(
        for request: HTTPRequest, options: RequestOptions = RequestOptions()
    ) async throws -> Value { try await value(of: DecodedCall(request, options: options)) }

    /// Gives up the values of a URL, whatever the methods and the fields of their requests were; what is being decoded for
    /// it is delivered to those who wait, and not kept. The response cache is not touched.
    /// - Throws: An ``HTTPError`` with the code `.invalidURL`.
    public func remove(for url: String) throws(HTTPError) {
        let request = HTTPRequest(method: .get, url: try HTTPSession.url(url))
        discard { $0.removed { $0.isAtURL(of: request) } }
    }

    /// Gives up the values of a request; else as ``remove(for:)-(String)``.
    public func remove(for request: HTTPRequest) {
        discard { $0.removed { $0.request == request } }
    }

    /// Gives up all values; what is being decoded is delivered to those who wait, and not kept. The response cache is not
    /// touched.
    public func removeAll() { discard { $0.removedAll() } }

    /// Tells that the response cache has a stored body no longer, or holds it for invalid: what was decoded from it goes.
    /// It takes a lock and no time, and may be called from anywhere.
    /// - Parameter representation: The number of the body, as in ``HTTPExchange/representation``.
    package func representationEnded(_ representation: UInt64) {
        let hasEnded = state.withLock { state in
            state.ended += state.machine.ended(representation)
            return !state.ended.isEmpty
        }
        // By a worker: the response cache calls this under its locks, and the end of a value is code of the program.
        if hasEnded { BlockingWorkers.shared.submit { self.releaseEnded() } }
    }

    private func releaseEnded() {
        let ended = state.withLock { state in
            defer { state.ended = [] }
            return state.ended
        }
        withExtendedLifetime(ended) {}
    }

    private func pressureChanged(to level: MemoryPressure) { discard { $0.pressureChanged(to: level) } }

    /// Has the machine give values up, which end outside of the lock.
    private func discard(_ change: (inout DecodingMachine<Value>) -> [Value]) {
        let dropped = state.withLock { change(&$0.machine) }
        withExtendedLifetime(dropped) {}
    }

    // MARK: Running

    private func value(of call: DecodedCall) async throws -> Value {
        try Task.checkCancellation()
        let (number, outcome) = join(call)
        return try await withTaskCancellationHandler {
            try await outcome.value
        } onCancel: {
            leave(number)
        }
    }

    /// Waits for a flight from now on, which is begun if there is none.
    private func join(_ call: DecodedCall) -> (number: UInt64, outcome: Outcome<Value>) {
        let sharing = DecodedSharingKey(call.resource, options: call.options)
        return state.withLock { state in
            let asked = state.machine.asked(call.resource, sharing: sharing)
            let number = asked.flight
            if !asked.isNew, let outcome = state.outcomes[number] { return (number, outcome) }
            let outcome = Outcome<Value>()
            state.outcomes[number] = outcome
            // Unstructured, since it is for all who wait, of whom each may leave. On the pool, whatever executor those who
            // ask prefer: decoding takes long, and the event loop's thread serves everybody. It begins by itself, not
            // under this lock.
            state.tasks[number] = Task(executorPreference: globalConcurrentExecutor) {
                await self.run(number, call)
            }
            return (number, outcome)
        }
    }

    /// One of those who wait for a flight was cancelled; its own wait ends by itself.
    private func leave(_ number: UInt64) {
        let task = state.withLock { state -> Task<Void, Never>? in
            let left = state.machine.left(number)
            if left.isGone { state.outcomes[number] = nil }
            return left.cancelled.flatMap { state.tasks.removeValue(forKey: $0) }
        }
        task?.cancel()
    }

    private func run(_ number: UInt64, _ call: DecodedCall) async {
        do {
            let exchange = try await fetch(call)
            let answered = state.withLock {
                $0.machine.answered(number, representation: exchange.representation)
            }
            switch answered {
            case .joined, .abandoned: finish(number, [], nil)
            case .taken(let value): finish(number, [number], .success(value))
            case .decode:
                let value = try await decode(exchange.validated())
                let cost = costOfValue(value)
                let (flights, dropped) = state.withLock { $0.machine.decoded(number, value, cost: cost) }
                finish(number, flights, .success(value))
                withExtendedLifetime(dropped) {}
            }
        } catch {
            finish(number, state.withLock { $0.machine.failed(number) }, .failure(error))
        }
    }

    /// Ends what a task did, and tells the result to those who wait for these flights.
    private func finish(_ number: UInt64, _ flights: [UInt64], _ result: Result<Value, any Error>?) {
        let outcomes = state.withLock { state in
            state.tasks[number] = nil
            return flights.compactMap { state.outcomes.removeValue(forKey: $0) }
        }
        guard let result else { return }
        for outcome in outcomes { outcome.settle(result) }
    }
}

extension DecodedCache: CustomStringConvertible, CustomReflectable {
    /// How many values there are and what they cost; nothing of them or of their requests.
    public var description: String {
        let (count, cost) = state.withLock { $0.machine.kept }
        return "DecodedCache<\(Value.self)>: \(count) values, cost \(cost) of \(limit.bytes)"
    }
    /// The same as ``description``.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}

/// A request for a value, as it is put to the session.
struct DecodedCall: Sendable {
    /// What is asked for.
    let resource: DecodedResource
    /// How otherwise than the session.
    let options: RequestOptions

    /// A request.
    init(_ request: HTTPRequest, secretURL: HTTPURL? = nil, options: RequestOptions) {
        resource = DecodedResource(request, secretURL: secretURL, options: options)
        self.options = options
    }

    /// A request for a URL.
    /// - Throws: An ``HTTPError`` with the code `.invalidURL`.
    init(_ url: String, headers: HTTPFields, options: RequestOptions) throws(HTTPError) {
        let url = try HTTPSession.url(url)
        // A request has no room for a name and a password: they go along in the URL, as in a session's `get`.
        self.init(
            HTTPRequest(method: .get, url: url, headerFields: headers),
            secretURL: url.userInfo == nil ? nil : url, options: options)
    }

    /// Puts it to a session.
    /// - Throws: An ``HTTPError``; `CancellationError`.
    func send(through session: HTTPSession) async throws -> HTTPExchange {
        let request = resource.request
        guard let url = resource.secretURL else { return try await session.send(request, options: options) }
        return try await session.send(request.method, url, headers: request.headerFields, options: options)
    }
}

/// What a value is decoded from, as far as the request decides it: where it is, who asks with which fields, and in which
/// form the body comes.
struct DecodedResource: Hashable, Sendable {
    /// The request.
    let request: HTTPRequest
    /// The URL with its name and password; `nil` where it has none.
    let secretURL: HTTPURL?
    /// Whether content codings are undone, as the options say.
    private let decompresses: Bool?
    /// Whether the body comes as it stands on the wire.
    private let isRaw: Bool
    /// Whether it ends with the connection, whatever is said of its length.
    private let ignoresContentLength: Bool
    /// What is not sent: `Accept-Encoding`, say, on which the body's form depends.
    private let omittedFields: Set<HTTPField.Name>

    /// What a request with these options asks for.
    init(_ request: HTTPRequest, secretURL: HTTPURL? = nil, options: RequestOptions) {
        self.request = request
        self.secretURL = secretURL
        decompresses = options.decompresses
        isRaw = options.isRaw
        ignoresContentLength = options.ignoresContentLength
        omittedFields = options.omittedFields
    }

    /// Whether it is at the URL of a request, whatever the method and the fields are.
    func isAtURL(of other: HTTPRequest) -> Bool {
        request.path == other.path && request.authority == other.authority && request.scheme == other.scheme
    }
}
