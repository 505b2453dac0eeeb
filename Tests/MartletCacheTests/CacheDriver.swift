import MartletWire

@testable import MartletCache

/// Applies the decisions of the cache rules to a store, as a client does, with a network that the test controls.
final class CacheDriver {
    /// A request with the stored responses for it and the time at which it was sent.
    struct Exchange {
        let request: CacheRequest
        let readers: [EntryReader]
        let variants: [StoredVariant]
        let decision: CacheDecision
        let epoch: InvalidationLog.Epoch

        /// The fields that the cache adds to the request; `nil` if nothing is sent.
        var added: FieldBlock? {
            switch decision {
            case .validate(let plan), .serveThenValidate(_, let plan),
                .serveStaleWhileRevalidating(_, let plan):
                plan.fields
            case .forward(let plan): plan.fields
            case .serve, .unsatisfiable: nil
            }
        }
    }

    /// The response that the caller receives.
    struct StreamedResponse: Equatable {
        var head: ResponseHead
        var body: String
        var isStored = false
    }

    let disk: DiskCache
    private(set) var invalidations = InvalidationLog()
    private(set) var sentCount = 0

    init(_ disk: DiskCache) {
        self.disk = disk
    }

    /// Looks up the stored responses and decides.
    func begin(_ request: CacheRequest, at seconds: Int64) -> Exchange {
        let readers = disk.variants(of: request.key)
        let variants = readers.map { StoredVariant(head: $0.head, bodyLength: $0.byteCount) }
        let decision = CacheDecision(request, variants: variants, now: Scene.at(seconds))
        return Exchange(
            request: request, readers: readers, variants: variants, decision: decision, epoch: invalidations.epoch)
    }

    /// Returns the stored response if no network is needed.
    func hit(_ exchange: Exchange) throws -> StreamedResponse? {
        guard case .serve(let answer) = exchange.decision else {
            disk.noteUse(of: nil)
            return nil
        }
        return try stored(answer, exchange)
    }

    private func stored(_ answer: CachedResponse, _ exchange: Exchange) throws -> StreamedResponse {
        let reader = exchange.readers[answer.variant]
        disk.noteUse(of: reader)
        let body = try reader.contents(limit: 1 << 20)
        return StreamedResponse(
            head: answer.head, body: String(decoding: body, as: UTF8.self), isStored: true)
    }

    /// Applies the decision on a response of the network.
    func end(
        _ exchange: Exchange, _ response: ResponseHead, _ body: String = "", at seconds: Int64
    ) throws -> StreamedResponse {
        sentCount += 1
        let decider = CacheUpdateRule(
            exchange.request, after: exchange.decision, variants: exchange.variants)
        let decided = decider.received(
            response, requestTime: Scene.at(seconds), responseTime: Scene.at(seconds))
        for freshening in decided.freshened {
            _ = disk.updateHead(of: exchange.readers[freshening.variant], to: freshening.head)
        }
        for index in decided.removed { disk.remove(exchange.readers[index]) }
        if case .store(let head) = decided.storage, let writer = disk.begin(head) {
            writer.append(Array(body.utf8))
            writer.commit { _ in invalidations.holds(exchange.epoch, for: exchange.request.key) }
        }
        switch decided.delivery {
        case .network: return StreamedResponse(head: response, body: body)
        case .stored(let answer), .staleOnError(let answer): return try stored(answer, exchange)
        case .repeatUnconditionally: return StreamedResponse(head: response, body: "again")
        }
    }

    /// Applies the effect of a response to another method on stored responses.
    func changed(_ method: String, _ url: String, _ response: ResponseHead) {
        let targets = InvalidationRule.targets(method: method, url: url, response: response) { $0 }
        for target in targets {
            invalidations.invalidate(target)
            disk.remove(CacheKey(url: target))
        }
    }
}
