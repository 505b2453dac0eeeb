import MartletFeatureSettings
public import MartletCore
public import MartletCache
import Synchronization

/// The responses of a call that may have two: the stored one immediately as a preview, then the final one.
///
/// The sequence ends with the final response (``CacheThenNetworkResponse/isPreview`` is `false`), or throws an
/// ``HTTPError`` of the network, also when offline, or `CancellationError`. If the final response repeats the preview,
/// its ``CacheThenNetworkResponse/isUnchanged`` is `true`.
///
/// There is one response if nothing is stored, or the stored one is fresh and the mode is not
/// ``CacheMode/cacheThenRevalidate``. The request to the network is sent when the second response is requested. Each
/// iterator makes its own call. Only one task may use an iterator; cancelling it cancels the current request.
public struct CacheThenNetworkResponses: AsyncSequence, Sendable {
    /// The type of the elements.
    public typealias Element = CacheThenNetworkResponse
    /// A request with its body and the options of its call.
    package typealias Prepared = (
        target: HTTPTargetForm, query: ParameterValue, headers: HTTPHeaders, body: HTTPBody, options: RequestOptions
    )

    private let session: HTTPSession
    private let mode: CacheMode
    private let prepare: @Sendable () throws -> Prepared
    private let accept: @Sendable (HTTPExchange) throws -> HTTPExchange

    /// Creates the sequence of a call's responses.
    /// - Parameters:
    ///   - accept: Checks a response, and throws an error to reject it; a rejected preview is skipped.
    ///   - prepare: Creates the request of an iterator.
    package init(
        _ session: HTTPSession, _ mode: CacheMode,
        accept: @escaping @Sendable (HTTPExchange) throws -> HTTPExchange = { $0 },
        prepare: @escaping @Sendable () throws -> Prepared
    ) { (self.session, self.mode, self.prepare, self.accept) = (session, mode, prepare, accept) }

    /// An iterator over the responses.
    public struct Iterator: AsyncIteratorProtocol {
        private enum Stage {
            case first
            /// The final response; the preview is `nil` if it was not accepted.
            case second(Prepared, after: HTTPExchange?)
            case over
        }

        private let deliveries: CacheThenNetworkResponses
        private var stage = Stage.first

        fileprivate init(_ deliveries: CacheThenNetworkResponses) { self.deliveries = deliveries }

        /// Returns the next response; `nil` after the final one, and after an error.
        /// - Throws: An ``HTTPError`` if there is no final response; `CancellationError`.
        public mutating func next() async throws -> CacheThenNetworkResponse? {
            if case .first = stage {
                // After an error nothing is retried.
                stage = .over
                let prepared = try deliveries.prepare()
                let exchange = try await deliveries.send(prepared, takesPreview: true)
                guard exchange.isPreview else { return try deliveries.delivery(of: exchange) }
                let preview = try? deliveries.delivery(of: exchange)
                stage = .second(prepared, after: preview.map { _ in exchange })
                if let preview { return preview }
            }
            guard case .second(let prepared, let preview) = stage else { return nil }
            stage = .over
            let exchange = try await deliveries.send(prepared, takesPreview: false)
            let isUnchanged = exchange.statusCode == preview?.statusCode && exchange.body == preview?.body
            return try deliveries.delivery(of: exchange, isUnchanged: isUnchanged)
        }

        /// Returns the next response; `nil` after the last one.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error)
            -> CacheThenNetworkResponse?
        { try await next() }
    }

    /// Creates an iterator, which makes its own call.
    public func makeAsyncIterator() -> Iterator { Iterator(self) }

    private func send(_ prepared: Prepared, takesPreview: Bool) async throws -> HTTPExchange {
        var options = prepared.options
        options.takesPreview = takesPreview && mode.startsWithPreview
        options.cacheMode = takesPreview ? mode : .revalidate
        return try await session.send(
            prepared.target, query: prepared.query, body: prepared.body, headers: prepared.headers, options: options)
    }

    private func delivery(of exchange: HTTPExchange, isUnchanged: Bool = false) throws -> CacheThenNetworkResponse {
        CacheThenNetworkResponse(
            exchange: try accept(exchange), isPreview: exchange.isPreview, isUnchanged: isUnchanged)
    }
}

extension HTTPSession {
    /// Sends a request whose response may come twice: the stored one immediately as a preview, then the final one.
    ///
    /// ```swift
    /// for try await delivery in session.deliveries(for: request) {
    ///     show(delivery.exchange, stale: delivery.isStale)
    /// }
    /// ```
    /// The loop ends after the final response, or throws an ``HTTPError``, also for an invalid URL, or
    /// `CancellationError`.
    /// - Parameters:
    ///   - target: The URL, or a request with a method and header fields. For a URL: GET, or POST with a body.
    ///   - timeout: The maximum duration of each of the two requests.
    ///   - cache: ``CacheMode/cacheThenNetwork`` by default; with ``CacheMode/cacheThenRevalidate``, a response of the
    ///     network follows a fresh stored one, too. Other modes deliver one response.
    public nonisolated func deliveries(
        for target: some HTTPTarget, query: ParameterValue = .null, body: HTTPBody = .none,
        headers: HTTPHeaders = HTTPHeaders(), cache: CacheMode = .cacheThenNetwork, timeout: Duration? = nil,
        options: RequestOptions = RequestOptions()
    ) -> CacheThenNetworkResponses {
        let (target, options) = (target.httpTarget, options.limited(to: timeout))
        return CacheThenNetworkResponses(self, cache) { (target, query, headers, body, options) }
    }
}

/// A response of a call that may have two: the stored one, or that of the network.
public struct CacheThenNetworkResponse: Sendable {
    /// The response with its head and body.
    public let exchange: HTTPExchange
    /// Whether the body comes from the cache: fresh, stale, or confirmed by the server with a 304 (`.validatedCache`).
    public var isFromCache: Bool { isStale || [.cache, .validatedCache].contains(exchange.source) }
    /// Whether this is a stale stored response.
    public var isStale: Bool { exchange.source == .staleCache }
    /// Whether this is a preview, fresh or stale: the final response, or an error, follows.
    public let isPreview: Bool
    /// Whether this is a final response with the status and body of the preview: a view need not change.
    public let isUnchanged: Bool
}

/// The emitter of a cache's events. The first subscriber also receives earlier events, such as those of the opening.
final class CacheEventEmitter: Sendable {
    /// The maximum number of events that are stored for the first subscriber.
    private static let limit = 64

    private let hub = EventBroadcaster<CacheEvent>()
    /// The events before the first subscription; `nil` after it. The mutex orders events and subscriptions.
    private let early = Mutex<[CacheEvent]?>([])

    func emit(_ event: CacheEvent) {
        let isEarly = early.withLock { early in
            guard let count = early?.count else { return false }
            if count < CacheEventEmitter.limit { early?.append(event) }
            return true
        }
        // Outside of the lock, because it resumes the subscribers.
        if !isEarly { hub.emit(event) }
    }

    func subscribe() -> CacheEvents {
        let subscription = early.withLock { early in
            let subscription = EventSubscription(hub: hub, limit: CacheEvents.defaultBufferCount) { .dropped($0) }
            for event in early ?? [] { subscription.queue.append(event) }
            early = nil
            return subscription
        }
        return CacheEvents { await subscription.queue.next() }
    }

    func end() { hub.end() }
}

/// An event of a cache. None is an error of a request.
public enum CacheEvent: Sendable, Hashable {
    /// A body above an eighth of the limit was not stored. The count is that of its announced or received bytes.
    case tooLarge(url: String, byteCount: UInt64, limit: UInt64)
    /// A response was not stored, because no space could be freed.
    case noRoom(url: String)
    /// A stored file was damaged, or of another version; it was removed.
    case damaged(file: String, reason: String)
    /// The directory cannot be read or written, for this reason; reported once, until that changes.
    case unavailable(reason: String)
    /// The directory can be used again.
    case recovered
    /// Entries on disk were evicted to make room.
    case evicted(count: Int, byteCount: UInt64)
    /// The index of the disk is complete: the number of entries, and whether there was a file with their order.
    case indexed(count: Int, hadFile: Bool)
    /// A stale response that was served could not be validated afterwards.
    case revalidationFailed(url: String)
    /// A stored response replaced an error: an error response with this status, or none (`nil`).
    case staleOnError(url: String, status: Int?)
    /// A slow subscriber missed this number of events before the next one.
    case dropped(Int)

    init(_ event: DiskCacheEvent) {
        self =
            switch event {
            case .tooLarge(let key, let byteCount, let limit):
                .tooLarge(url: key.url, byteCount: byteCount, limit: limit)
            case .noRoom(let key): .noRoom(url: key.url)
            case .damaged(let file, let error): .damaged(file: file, reason: "\(error)")
            case .unavailable(let error): .unavailable(reason: error.description)
            case .recovered: .recovered
            case .evicted(let count, let byteCount): .evicted(count: count, byteCount: byteCount)
            case .indexed(let count, let hadFile): .indexed(count: count, hadFile: hadFile)
            }
    }
}

/// The events of a cache, as an `AsyncSequence`: a subscription with its own buffer.
///
/// The first sequence of a cache also contains up to 64 earlier events. When the buffer of a slow subscriber is full,
/// the oldest event is dropped, and ``CacheEvent/dropped(_:)`` reports the number. The sequence does not retain the
/// cache, and ends when the cache is released.
public typealias CacheEvents = EventSequence<CacheEvent>

extension EventSequence<CacheEvent> {
    /// The number of events that are buffered: 256.
    public static var defaultBufferCount: Int { 256 }
}

extension HTTPExchange.Source {
    /// A stored response that was fresh.
    public static let cache = HTTPExchange.Source(rawValue: "cache")
    /// A stored response that the server confirmed to be valid.
    public static let validatedCache = HTTPExchange.Source(rawValue: "validatedCache")
    /// A stale stored response: served while it is validated, instead of an error, or because the request allows it.
    public static let staleCache = HTTPExchange.Source(rawValue: "staleCache")
}
