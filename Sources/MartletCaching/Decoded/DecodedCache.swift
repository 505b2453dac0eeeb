public import MartletConditions
public import MartletCore
import Synchronization

/// Values that are decoded from the bodies of responses (thumbnails, models), in memory and bounded by their cost.
///
/// ```swift
/// let thumbnails = DecodedCache<Thumbnail>(session: session, cost: { $0.byteCount }) {
///     try await Thumbnail(decoding: $0.body, width: 200)
/// }
/// let picture = try await thumbnails.value(for: "https://example.com/a.jpg")
/// ```
///
/// Each request is sent through the session, whose response cache decides whether a stored response may be used. If a
/// value was decoded from the body of that response, it is returned; otherwise the body is decoded. A value is stored
/// as long as the response cache stores its body and the limits permit. At ``MemoryPressure/warning`` the limits are
/// halved; at the critical level nothing is stored.
///
/// Identical GET and HEAD requests (URL, fields and all options) share one request, until the response is received, and
/// one decoding of its body. Cancelling a waiting task throws `CancellationError` there immediately; cancelling the
/// last one also cancels the request or decoding. Requests with their own validator, proxy or authentication handler
/// are never identical, because closures are not comparable.
///
/// Only responses with a 2xx status are decoded, in a separate task on the concurrent pool. The decoder must not
/// request the same value, because it would wait for itself. All waiting callers throw its error; the next request
/// decodes again.
///
/// A cache is for one kind of value: thumbnails of two sizes need two, which share the body in the response cache.
public final class DecodedCache<Value: Sendable>: Sendable {
    /// Decodes a response with a 2xx status.
    public typealias Decode = @Sendable (HTTPExchange) async throws -> Value
    typealias Fetch = @Sendable (DecodedCall) async throws -> HTTPExchange

    private struct State {
        var machine: DecodingMachine<Value>
        /// The outcomes that callers wait for, by the number of their flight.
        var outcomes: [UInt64: Promise<Value>] = [:]
        /// The tasks of flights and their decodings, by number, until they end or are cancelled.
        var tasks: [UInt64: Task<Void, Never>] = [:]
        /// Values of removed bodies, until a worker releases them.
        var ended: [Value] = []
        /// The task that follows the pressure on memory.
        var follower: Task<Void, Never>?
    }

    /// The lock on the state. No user code runs under it: no decoding, computation of costs, or release of a value.
    private let state: Mutex<State>
    private let fetch: Fetch
    private let costOfValue: @Sendable (Value) -> Int
    private let decode: Decode
    /// The maximum cost of all values.
    public let limit: ByteCount
    /// The maximum number of values.
    public let countLimit: Int

    /// Creates a cache of values that a closure decodes.
    /// - Parameters:
    ///   - session: The session that sends the requests.
    ///   - limit: The maximum cost of all values; the least recently used are evicted first. A value that costs more is
    ///     delivered and not stored. With 0 nothing is stored.
    ///   - countLimit: The maximum number of values, regardless of their cost; 10,000 by default. With 0 nothing is
    ///     stored.
    ///   - memoryPressure: The source of memory pressure; `nil` for none.
    ///   - cost: The cost of a value, usually its size in bytes; below 0 counts as 0. Called once for each value.
    ///   - decode: Decodes a response.
    /// - Throws: An ``HTTPError`` with the code `.invalidRequest` if the session has no cache.
    public convenience init(
        session: HTTPSession, limit: ByteCount = .mebibytes(64), countLimit: Int = 10_000,
        memoryPressure: MemoryPressureSource? = .system, cost: @escaping @Sendable (Value) -> Int,
        decode: @escaping Decode
    ) throws(HTTPError) {
        guard let cache = session.configuration.cache else {
            throw HTTPError(
                .invalidRequest, phase: .preparing,
                message: "a DecodedCache needs a session with a response cache: set configuration.cache, "
                    + "for example to .memoryOnly()")
        }
        self.init(
            fetch: { try await $0.send(through: session) }, limit: limit, countLimit: countLimit,
            memoryPressure: memoryPressure, cost: cost, decode: decode)
        cache.onBodyRemoved { [weak self] representation in
            self?.representationEnded(representation)
            return self != nil
        }
    }

    /// Creates a cache of values that a ``ResponseDecoder`` decodes, from content types that it accepts; otherwise like
    /// ``init(session:limit:countLimit:memoryPressure:cost:decode:)``.
    public convenience init<Decoder: ResponseDecoder>(
        session: HTTPSession, using decoder: Decoder, limit: ByteCount = .mebibytes(64), countLimit: Int = 10_000,
        memoryPressure: MemoryPressureSource? = .system, cost: @escaping @Sendable (Value) -> Int
    ) throws(HTTPError) where Decoder.Output == Value {
        try self.init(
            session: session, limit: limit, countLimit: countLimit, memoryPressure: memoryPressure, cost: cost
        ) { try $0.decode(using: decoder) }
    }

    init(
        fetch: @escaping Fetch, limit: ByteCount, countLimit: Int = 10_000, memoryPressure: MemoryPressureSource? = nil,
        cost: @escaping @Sendable (Value) -> Int, decode: @escaping Decode
    ) {
        (self.fetch, costOfValue, self.decode) = (fetch, cost, decode)
        (self.limit, self.countLimit) = (limit, max(0, countLimit))
        state = Mutex(State(machine: DecodingMachine(limit: limit.bytes, countLimit: countLimit)))
        guard let memoryPressure else { return }
        // Unstructured, since it lives as long as the cache, which it does not retain.
        let follower = Task { [weak self] in
            for await level in memoryPressure { self?.discard { $0.pressureChanged(to: level) } }
        }
        state.withLock { $0.follower = follower }
    }

    deinit { state.withLock { $0.follower }?.cancel() }

    // MARK: Values

    /// The number of values.
    public var count: Int { state.withLock { $0.machine.kept.count } }

    /// The cost of all values; never above ``limit``.
    public var cost: Int { state.withLock { $0.machine.kept.cost } }

    /// The number of callers that wait for a value.
    var waiterCount: Int { state.withLock { $0.machine.waiterCount } }
    /// The number of requests and decodings that run and were not cancelled.
    var taskCount: Int { state.withLock { $0.tasks.count } }

    /// Returns the value of a URL or a request.
    /// - Parameters:
    ///   - target: The URL, which may have a user name and password for its origin, or a request with a method and
    ///     header fields.
    ///   - headers: Fields that replace those of the request.
    ///   - options: The options. Their priority and order determine when the request is sent if connections are busy.
    /// - Throws: An ``HTTPError``, also for a status that is not 2xx; the error of decoding; `CancellationError`.
    public func value(
        for target: some HTTPTarget, headers: HTTPHeaders = HTTPHeaders(), options: RequestOptions = RequestOptions()
    ) async throws -> Value { try await value(of: try DecodedCall(target, headers: headers, options: options)) }

    /// Removes the values of a URL, for all methods and fields of requests; otherwise like ``removeAll()``.
    /// - Throws: An ``HTTPError`` with the code `.invalidURL`.
    public func remove(for url: String) throws(HTTPError) {
        let request = HTTPRequest(method: .get, url: try HTTPSession.url(url))
        discard { $0.removed { $0.isAtURL(of: request) } }
    }

    /// Removes the values of a request; otherwise like ``removeAll()``.
    public func remove(for request: HTTPRequest) { discard { $0.removed { $0.request == request } } }

    /// Removes all values. Values that are being decoded are delivered and not stored. The response cache is unchanged.
    public func removeAll() { discard { $0.removed { _ in true } } }

    /// Removes the values of a body that was removed or invalidated. Does not block; any thread may call it.
    /// - Parameter representation: The number of the body, as in ``HTTPExchange/representation``.
    package func representationEnded(_ representation: UInt64) {
        let hasEnded = state.withLock { state in
            state.ended += state.machine.ended(representation)
            return !state.ended.isEmpty
        }
        // On a worker: the response cache calls this under its locks, and releasing a value may run user code.
        if hasEnded { BlockingThreadPool.shared.submit { self.releaseEnded() } }
    }

    private func releaseEnded() {
        var ended: [Value] = []
        state.withLock { swap(&$0.ended, &ended) }
    }

    /// Changes the machine, and releases the removed values outside of the lock.
    private func discard(_ change: (inout DecodingMachine<Value>) -> [Value]) {
        let dropped = state.withLock { change(&$0.machine) }
        withExtendedLifetime(dropped) {}
    }

    // MARK: Flights

    private func value(of call: DecodedCall) async throws -> Value {
        try Task.checkCancellation()
        let (number, outcome) = join(call)
        return try await withTaskCancellationHandler {
            try await outcome.value
        } onCancel: {
            leave(number)
        }
    }

    /// Joins a flight, or starts a new one.
    private func join(_ call: DecodedCall) -> (number: UInt64, outcome: Promise<Value>) {
        let sharing = DecodedSharingKey(call.resource, options: call.options)
        return state.withLock { state in
            let request = state.machine.valueRequested(call.resource, sharing: sharing)
            let number = request.flight
            if !request.isNew, let outcome = state.outcomes[number] { return (number, outcome) }
            let outcome = Promise<Value>()
            state.outcomes[number] = outcome
            // Unstructured, since all callers share it. On the pool, regardless of their preferred executor: decoding
            // takes long, and the event loop's thread serves all sessions. It starts separately, not under this lock.
            state.tasks[number] = Task(executorPreference: globalConcurrentExecutor) { await self.run(number, call) }
            return (number, outcome)
        }
    }

    /// Leaves a flight after a cancellation, which ends the caller's wait by itself.
    private func leave(_ number: UInt64) {
        let task = state.withLock { state -> Task<Void, Never>? in
            let action = state.machine.waiterCancelled(number)
            if action.isGone { state.outcomes[number] = nil }
            return action.cancelled.flatMap { state.tasks.removeValue(forKey: $0) }
        }
        task?.cancel()
    }

    private func run(_ number: UInt64, _ call: DecodedCall) async {
        do {
            let exchange = try await fetch(call)
            let action = state.withLock { $0.machine.responseReceived(number, representation: exchange.representation) }
            switch action {
            case .joined, .abandoned: finish(number, [], nil)
            case .taken(let value): finish(number, [number], .success(value))
            case .decode:
                let value = try await decode(exchange.validated())
                let cost = costOfValue(value)
                let (flights, dropped) = state.withLock { $0.machine.decoded(number, value, cost: cost) }
                finish(number, flights, .success(value))
                withExtendedLifetime(dropped) {}
            }
        } catch { finish(number, state.withLock { $0.machine.failed(number) }, .failure(error)) }
    }

    /// Removes a task that has ended, and delivers its result to the callers of these flights.
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
    /// The number of values and their cost, without any content of values or requests.
    public var description: String {
        let (count, cost) = state.withLock { $0.machine.kept }
        return "DecodedCache<\(Value.self)>: \(count) values, cost \(cost) of \(limit.bytes)"
    }
    /// The same as ``description``.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}

/// A request for a value, as it is sent through the session.
struct DecodedCall: Sendable {
    let resource: DecodedResource
    /// The options that override the session's configuration.
    let options: RequestOptions

    /// Creates a call.
    /// - Throws: An ``HTTPError`` with the code `.invalidURL` or `.invalidHeader`.
    init(_ target: some HTTPTarget, headers: HTTPHeaders = HTTPHeaders(), options: RequestOptions) throws(HTTPError) {
        let url: HTTPURL
        switch target.httpTarget {
        case .text(let text): url = try HTTPSession.url(text)
        case .url(let given): url = given
        case .segments: throw HTTPSession.segmentsWithoutHost
        case .request(var request):
            request.headerFields = try headers.checked(nil, over: request.headerFields)
            self.init(request, secretURL: nil, options)
            return
        }
        // A request cannot hold a user name and password: they are passed in the URL, as in a session's `get`.
        self.init(
            HTTPRequest(method: .get, url: url, headers: try headers.checked(url)),
            secretURL: url.userInfo == nil ? nil : url, options)
    }

    private init(_ request: HTTPRequest, secretURL: HTTPURL?, _ options: RequestOptions) {
        resource = DecodedResource(request, secretURL: secretURL, options: options)
        self.options = options
    }

    /// Sends the request through a session.
    /// - Throws: An ``HTTPError``; `CancellationError`.
    func send(through session: HTTPSession) async throws -> HTTPExchange {
        let request = resource.request
        guard let url = resource.secretURL else { return try await session.send(request, options: options) }
        return try await session.send(request.method, url, headers: HTTPHeaders(request.headerFields), options: options)
    }
}

/// The resource of a value: the request, and the form of the received body.
struct DecodedResource: Hashable, Sendable {
    let request: HTTPRequest
    /// The URL with its user name and password; `nil` if it has none.
    let secretURL: HTTPURL?
    /// The options that affect the form of the body: whether content codings are decoded, whether the body is returned
    /// raw, whether its length is ignored, and the fields that are not sent, such as `Accept-Encoding`.
    private let form: HashableValues

    init(_ request: HTTPRequest, secretURL: HTTPURL? = nil, options: RequestOptions) {
        (self.request, self.secretURL) = (request, secretURL)
        form = HashableValues([
            options.decompresses, options.returnsRawBody, options.ignoresContentLength, options.omittedFields,
        ])
    }

    /// Whether it has the URL of a request; method and fields are ignored.
    func isAtURL(of other: HTTPRequest) -> Bool {
        request.path == other.path && request.authority == other.authority && request.scheme == other.scheme
    }
}
