public import MartletCore
public import HTTPTypes
public import MartletCache
import Synchronization

/// The answers of a call that may have two, as an `AsyncSequence`: what is stored at once, however stale, and then that of the
/// network.
///
/// There is one where nothing is stored, or what is stored is fresh. Behind a preview comes the network's answer, unless it
/// is byte for byte the same though it was sent anew; one that was validated comes, too, with ``HTTPExchange/source``
/// ``HTTPExchange/Source/validatedCache``. Nothing is asked of the network before the second is. An error ends the sequence;
/// behind a preview the caller has that.
///
/// Each iterator makes the call anew. One task at a time uses an iterator; cancelling it cancels what runs.
public struct CacheDeliveries: AsyncSequence, Sendable {
    /// What iteration gives.
    public typealias Element = CacheDelivery

    let session: HTTPSession
    let request: HTTPRequest
    let body: HTTPBody
    let options: RequestOptions

    /// One pass.
    public struct Iterator: AsyncIteratorProtocol {
        private enum Stage {
            case first
            case second(HTTPExchange)
            case over
        }

        private let deliveries: CacheDeliveries
        private var stage = Stage.first

        init(_ deliveries: CacheDeliveries) { self.deliveries = deliveries }

        /// The next answer; `nil` behind the last one.
        /// - Throws: An ``HTTPError``; `CancellationError`.
        public mutating func next() async throws -> CacheDelivery? {
            let stage = stage
            // Whatever happens, an error included, it is not tried again.
            self.stage = .over
            switch stage {
            case .first:
                let exchange = try await deliveries.send(deliveries.options)
                guard exchange.isPreview else { return CacheDelivery(exchange: exchange, isPreview: false) }
                self.stage = .second(exchange)
                return CacheDelivery(exchange: exchange, isPreview: true)
            case .second(let preview):
                var options = deliveries.options
                options.cacheMode = .revalidate
                let exchange = try await deliveries.send(options)
                let isSame =
                    exchange.source != .validatedCache && exchange.statusCode == preview.statusCode
                    && exchange.body == preview.body
                return isSame ? nil : CacheDelivery(exchange: exchange, isPreview: false)
            case .over: return nil
            }
        }

        /// The next answer; `nil` behind the last one.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(any Error) -> CacheDelivery? { try await next() }
    }

    /// A pass from the beginning.
    public func makeAsyncIterator() -> Iterator { Iterator(self) }

    fileprivate func send(_ options: RequestOptions) async throws -> HTTPExchange {
        try await session.send(request, body: body, options: options)
    }
}

extension HTTPSession {
    /// Sends a request whose answer may be delivered twice: what is stored at once, then what the network says.
    ///
    /// ```swift
    /// for try await delivery in session.deliveries(for: request) { show(delivery.exchange, stale: delivery.isPreview) }
    /// ```
    ///
    /// - Parameter cache: How it uses the cache; with any mode but ``CacheMode/cacheThenNetwork`` there is one answer.
    public nonisolated func deliveries(
        for request: HTTPRequest, body: HTTPBody = .none, cache: CacheMode = .cacheThenNetwork,
        options: RequestOptions = RequestOptions()
    ) -> CacheDeliveries {
        var options = options
        options.cacheMode = cache
        options.takesPreview = cache == .cacheThenNetwork
        return CacheDeliveries(session: self, request: request, body: body, options: options)
    }

    /// Fetches a URL whose answer may be delivered twice; else as ``deliveries(for:body:cache:options:)``.
    /// - Throws: An ``HTTPError`` for a URL that cannot be parsed.
    public nonisolated func deliveries(
        for url: String, cache: CacheMode = .cacheThenNetwork, options: RequestOptions = RequestOptions()
    ) throws(HTTPError) -> CacheDeliveries {
        deliveries(for: try HTTPRequest(method: .get, url: url), cache: cache, options: options)
    }
}

/// An answer of a call that may have two: what is stored, and what the network says of it.
public struct CacheDelivery: Sendable {
    /// The answer.
    public let exchange: HTTPExchange
    /// Whether it is what was stored, as it was.
    public var isFromCache: Bool { exchange.source == .cache || exchange.source == .staleCache }
    /// Whether another may follow: this is a preview of what the network is being asked about.
    public let isPreview: Bool
}

/// Hands the events of a cache to its subscribers, and those of its opening to the first of them: they happen before
/// anybody can subscribe.
final class CacheTeller: Sendable {
    /// How many events are kept for the first subscriber.
    private static let limit = 64

    private let hub = EventHub<CacheEvent>()
    /// What happened before the first subscriber came; `nil` once one has. Guards the order of both.
    private let early = Mutex<[CacheEvent]?>([])

    /// Tells what happened.
    func tell(_ event: CacheEvent) {
        let isEarly = early.withLock { early in
            guard let count = early?.count else { return false }
            if count < CacheTeller.limit { early?.append(event) }
            return true
        }
        // Outside of the lock, since it resumes the subscribers.
        if !isEarly { hub.tell(event) }
    }

    /// A subscription.
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

/// What a cache has to say. None of it is an error of a request.
public enum CacheEvent: Sendable, Hashable {
    /// A body was not stored, since it is above an eighth of the limit; so many bytes of it were announced or seen.
    case tooLarge(url: String, byteCount: UInt64, limit: UInt64)
    /// A response was not stored, since no room could be made.
    case noRoom(url: String)
    /// A stored file was damaged, or of another version; it was removed.
    case damaged(file: String, reason: String)
    /// The folder cannot be used as it should, for this reason; said once, until that changes.
    case unavailable(reason: String)
    /// The folder can be used again.
    case recovered
    /// Entries on disk were given up for others.
    case evicted(count: Int, byteCount: UInt64)
    /// The index of the disk is complete: so many entries, and whether there was a file that told their order.
    case indexed(count: Int, hadFile: Bool)
    /// A response that had been served stale could not be validated behind it.
    case revalidationFailed(url: String)
    /// A stored response stood in for an error: the server's, by its status, or `nil` where there was no answer.
    case staleOnError(url: String, status: Int?)
    /// A subscriber was too slow for so many events, which came before the next one.
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

/// What happens in a cache, as an `AsyncSequence`: one subscription, with a buffer of its own.
///
/// It begins where the sequence is made, the first of a cache's with the cache itself, and ends when the last copy of it and
/// the last of its iterators are gone. A slow subscriber holds nobody up: when its buffer is full the oldest event is dropped,
/// and ``CacheEvent/dropped(_:)`` says how many were. The sequence ends when the cache is gone, which it does not keep.
public struct CacheEvents: AsyncSequence, Sendable {
    /// What iteration gives.
    public typealias Element = CacheEvent
    /// Iteration does not fail.
    public typealias Failure = Never

    /// How many events are buffered: 256.
    public static let defaultBufferCount = 256

    private let subscription: EventSubscription<CacheEvent>

    init(_ teller: CacheTeller) { subscription = teller.subscribe(limit: CacheEvents.defaultBufferCount) }

    /// One pass over the events.
    public struct Iterator: AsyncIteratorProtocol {
        let subscription: EventSubscription<CacheEvent>

        /// The next event; `nil` behind the last one, or when the task is cancelled.
        public mutating func next() async -> CacheEvent? { await subscription.queue.next() }

        /// The next event; `nil` behind the last one, or when the task is cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> CacheEvent? {
            await subscription.queue.next()
        }
    }

    /// A pass that goes on where the others are.
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
