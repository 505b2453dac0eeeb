public import MartletCache

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

        init(_ deliveries: CacheDeliveries) {
            self.deliveries = deliveries
        }

        /// The next answer; `nil` behind the last one.
        /// - Throws: An ``HTTPError``; `CancellationError`.
        public mutating func next() async throws -> CacheDelivery? {
            let stage = stage
            // Whatever happens, an error included, it is not tried again.
            self.stage = .over
            switch stage {
            case .first:
                let exchange = try await deliveries.send(deliveries.options)
                guard exchange.storage.isPreview else {
                    return CacheDelivery(exchange: exchange, isPreview: false)
                }
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
        ) async throws(any Error) -> CacheDelivery? {
            try await next()
        }
    }

    /// A pass from the beginning.
    public func makeAsyncIterator() -> Iterator {
        Iterator(self)
    }

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
