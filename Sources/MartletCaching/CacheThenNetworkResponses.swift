public import MartletCore
public import MartletCache
import Synchronization

/// The responses of a call that may have two, as an `AsyncSequence`: the stored one immediately, however stale, and then that
/// of the network.
///
/// There is one response if nothing is stored, or the stored one is fresh and the mode is not ``CacheMode/cacheThenRevalidate``.
/// After a preview, the network's response is skipped if it is byte for byte the same, unless it was validated: that one has
/// ``HTTPExchange/source`` ``HTTPExchange/Source/validatedCache``. The network is not asked before the second response is
/// requested. An error ends the sequence; after a preview the caller still has that.
///
/// Each iterator makes its own call. One task at a time uses an iterator; cancelling it cancels the current request.
public struct CacheThenNetworkResponses: AsyncSequence, Sendable {
    /// The type of the elements.
    public typealias Element = CacheThenNetworkResponse
    /// A request with its body and the options of its call.
    package typealias Prepared = (
        target: HTTPTargetForm, query: ParameterValue, headers: HTTPHeaders, body: HTTPBody,
        options: RequestOptions
    )

    private let session: HTTPSession
    private let mode: CacheMode
    private let prepare: @Sendable () async throws -> Prepared
    private let accept: @Sendable (HTTPExchange) async throws -> HTTPExchange

    /// Creates the responses of a call.
    /// - Parameters:
    ///   - accept: Checks a response, and throws for one that is not delivered; a preview that it rejects is skipped.
    ///   - prepare: Makes the request, for each iterator.
    package init(
        _ session: HTTPSession, _ mode: CacheMode,
        accept: @escaping @Sendable (HTTPExchange) async throws -> HTTPExchange = { $0 },
        prepare: @escaping @Sendable () async throws -> Prepared
    ) {
        self.session = session
        self.mode = mode
        self.prepare = prepare
        self.accept = accept
    }

    /// An iterator over the responses.
    public struct Iterator: AsyncIteratorProtocol {
        private enum Stage {
            case first
            case second(Prepared, after: HTTPExchange?)
            case over
        }

        private let deliveries: CacheThenNetworkResponses
        private var stage = Stage.first

        fileprivate init(_ deliveries: CacheThenNetworkResponses) { self.deliveries = deliveries }

        /// The next response; `nil` after the last one.
        /// - Throws: An ``HTTPError``; `CancellationError`.
        public mutating func next() async throws -> CacheThenNetworkResponse? {
            if case .first = stage {
                // After an error nothing is retried.
                stage = .over
                let prepared = try await deliveries.prepare()
                let exchange = try await deliveries.send(prepared, takesPreview: true)
                guard exchange.isPreview else { return try await deliveries.delivery(of: exchange) }
                if let preview = try? await deliveries.delivery(of: exchange) {
                    stage = .second(prepared, after: exchange)
                    return preview
                }
                stage = .second(prepared, after: nil)
            }
            guard case .second(let prepared, let preview) = stage else { return nil }
            stage = .over
            let exchange = try await deliveries.send(prepared, takesPreview: false)
            let isSame =
                exchange.source != .validatedCache && exchange.statusCode == preview?.statusCode
                && exchange.body == preview?.body
            return isSame ? nil : try await deliveries.delivery(of: exchange)
        }

        /// The next response; `nil` after the last one.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(any Error) -> CacheThenNetworkResponse? { try await next() }
    }

    /// Creates an iterator, which makes its own call.
    public func makeAsyncIterator() -> Iterator { Iterator(self) }

    private func send(_ prepared: Prepared, takesPreview: Bool) async throws -> HTTPExchange {
        var options = prepared.options
        options.takesPreview = takesPreview && (mode == .cacheThenNetwork || mode == .cacheThenRevalidate)
        options.cacheMode = takesPreview ? mode : .revalidate
        return try await session.send(
            prepared.target, query: prepared.query, headers: prepared.headers, body: prepared.body,
            options: options)
    }

    private func delivery(of exchange: HTTPExchange) async throws -> CacheThenNetworkResponse {
        CacheThenNetworkResponse(exchange: try await accept(exchange), isPreview: exchange.isPreview)
    }
}

extension HTTPSession {
    /// Sends a request whose response may be delivered twice: the stored one immediately, then that of the network.
    ///
    /// ```swift
    /// for try await delivery in session.deliveries(for: request) { show(delivery.exchange, stale: delivery.isStale) }
    /// ```
    /// An invalid URL is reported when the first response is requested.
    /// - Parameters:
    ///   - target: The URL, or a request with a method and header fields. The default method is GET, with a body POST.
    ///   - timeout: The maximum duration of each of the two requests.
    ///   - cache: The use of the cache: ``CacheMode/cacheThenNetwork`` by default; with
    ///     ``CacheMode/cacheThenRevalidate`` a fresh response is followed by that of the network too. Other modes lead to one
    ///     response.
    public nonisolated func deliveries(
        for target: some HTTPTarget, query: ParameterValue = .null, headers: HTTPHeaders = HTTPHeaders(),
        body: HTTPBody = .none, cache: CacheMode = .cacheThenNetwork, timeout: Duration? = nil,
        options: RequestOptions = RequestOptions()
    ) -> CacheThenNetworkResponses {
        let (target, options) = (target.httpTarget, options.limited(to: timeout))
        return CacheThenNetworkResponses(self, cache) { (target, query, headers, body, options) }
    }
}

/// A response of a call that may have two: the stored one, or that of the network.
public struct CacheThenNetworkResponse: Sendable {
    /// The response.
    public let exchange: HTTPExchange
    /// Whether it is the stored response, unvalidated.
    public var isFromCache: Bool { isStale || exchange.source == .cache }
    /// Whether it is a stored response that is stale.
    public var isStale: Bool { exchange.source == .staleCache }
    /// Whether it is a preview, fresh or stale, which the response of the network may follow.
    public let isPreview: Bool
}

/// Emits the events of a cache. The first subscriber also receives those of its opening, which come before any subscription.
final class CacheEventEmitter: Sendable {
    /// The maximum number of events for the first subscriber.
    private static let limit = 64

    private let hub = EventBroadcaster<CacheEvent>()
    /// The events before the first subscription; `nil` after it. Guards the order of both.
    private let early = Mutex<[CacheEvent]?>([])

    /// Emits an event.
    func tell(_ event: CacheEvent) {
        let isEarly = early.withLock { early in
            guard let count = early?.count else { return false }
            if count < CacheEventEmitter.limit { early?.append(event) }
            return true
        }
        // Outside of the lock, since it resumes the subscribers.
        if !isEarly { hub.tell(event) }
    }

    /// Adds a subscription.
    func subscribe(limit: Int) -> EventSubscription<CacheEvent> {
        early.withLock { early in
            let subscription = EventSubscription(hub: hub, limit: limit) { .dropped($0) }
            for event in early ?? [] { subscription.queue.append(event) }
            early = nil
            return subscription
        }
    }

    /// Ends all subscriptions.
    func end() { hub.end() }
}

/// An event of a cache. None is an error of a request.
public enum CacheEvent: Sendable, Hashable {
    /// A body above an eighth of the limit was not stored; so many bytes of it were announced or received.
    case tooLarge(url: String, byteCount: UInt64, limit: UInt64)
    /// A response was not stored, since no room could be made.
    case noRoom(url: String)
    /// A stored file was damaged, or of another version; it was removed.
    case damaged(file: String, reason: String)
    /// The directory cannot be used as intended, for this reason; reported once, until that changes.
    case unavailable(reason: String)
    /// The directory can be used again.
    case recovered
    /// Entries on disk were evicted to make room.
    case evicted(count: Int, byteCount: UInt64)
    /// The index of the disk is complete: the number of entries, and whether there was a file with their order.
    case indexed(count: Int, hadFile: Bool)
    /// A response that had been served stale could not be validated afterwards.
    case revalidationFailed(url: String)
    /// A stored response replaced an error: the status of the server's, or `nil` if there was no response.
    case staleOnError(url: String, status: Int?)
    /// A slow subscriber missed so many events, which preceded the next one.
    case dropped(Int)

    init(_ event: DiskCacheEvent) {
        self =
            switch event {
            case .tooLarge(let key, let byteCount, let limit):
                .tooLarge(url: key.url, byteCount: byteCount, limit: limit)
            case .noRoom(let key): .noRoom(url: key.url)
            case .damaged(let file, let fault): .damaged(file: file, reason: "\(fault)")
            case .unavailable(let error): .unavailable(reason: error.description)
            case .recovered: .recovered
            case .evicted(let count, let byteCount): .evicted(count: count, byteCount: byteCount)
            case .indexed(let count, let hadFile): .indexed(count: count, hadFile: hadFile)
            }
    }
}

/// The events of a cache, as an `AsyncSequence`: a subscription with its own buffer.
///
/// It starts when the sequence is created, the first of a cache with the cache itself, and ends when its last copy and its last
/// iterator are released. When the buffer of a slow subscriber is full, the oldest event is dropped, and
/// ``CacheEvent/dropped(_:)`` reports the number. The sequence ends with the cache, which it does not retain.
public struct CacheEvents: AsyncSequence, Sendable {
    /// The type of the elements.
    public typealias Element = CacheEvent
    /// Iteration does not fail.
    public typealias Failure = Never

    /// The number of events that are buffered: 256.
    public static let defaultBufferCount = 256

    private let subscription: EventSubscription<CacheEvent>

    init(_ teller: CacheEventEmitter) {
        subscription = teller.subscribe(limit: CacheEvents.defaultBufferCount)
    }

    /// An iterator over the events.
    public struct Iterator: AsyncIteratorProtocol {
        let subscription: EventSubscription<CacheEvent>

        /// The next event; `nil` after the last one, or when the task is cancelled.
        public mutating func next() async -> CacheEvent? { await subscription.queue.next() }

        /// The next event; `nil` after the last one, or when the task is cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> CacheEvent? {
            await subscription.queue.next()
        }
    }

    /// Creates an iterator; all iterators share the events.
    public func makeAsyncIterator() -> Iterator { Iterator(subscription: subscription) }
}

extension HTTPExchange.Source {
    /// A stored response that was fresh.
    public static let cache = HTTPExchange.Source(rawValue: "cache")
    /// A stored response that the server confirmed to be valid.
    public static let validatedCache = HTTPExchange.Source(rawValue: "validatedCache")
    /// A stored response that was stale: served while it is validated, in place of an error, or because the request allowed it.
    public static let staleCache = HTTPExchange.Source(rawValue: "staleCache")
}
