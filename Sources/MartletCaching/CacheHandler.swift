import MartletCore
import MartletCache

/// The handling of a request by the cache: carries out ``CacheDecision``, ``CacheUpdateRule`` and ``InvalidationRule``.
struct CacheHandler {
    let cache: ResponseCache
    let core: SessionCore
    let dialer: Dialer
    let call: Call
    let control: TransferControl
    let request: CacheRequest
    /// Whether stored responses are ignored, because one of them was damaged.
    private var ignoresStored: Bool
    /// The statuses of stored responses that are not served, because such a response caused a retry of the request.
    private let unwantedStatuses: Set<Int>
    /// Whether the disk was read, or need not be.
    private var hasLookedIntoDisk = false

    private(set) var found: [StoredResponse] = []
    private(set) var decision: CacheDecision
    private(set) var epoch: InvalidationLog.Epoch

    init(
        _ cache: ResponseCache, core: SessionCore, dialer: Dialer, call: Call, control: TransferControl,
        ignoresStored: Bool = false, unwantedStatuses: Set<Int> = []
    ) {
        (self.cache, self.core, self.dialer, self.call, self.control) = (cache, core, dialer, call, control)
        (self.ignoresStored, self.unwantedStatuses) = (ignoresStored, unwantedStatuses)
        request = call.cacheRequest()
        epoch = cache.store.epoch
        decision = .unsatisfiable(.nothing)
    }

    /// Returns the response to the request.
    /// - Throws: ``HTTPError``, or `CancellationError`.
    mutating func answer() async throws -> StreamedResponse {
        guard call.isLookedUp else {
            guard request.isOffline else { return try await changing() }
            var status = CacheStatus.nothing
            status.detail = "only-if-cached, but the cache does not serve this request"
            return unsatisfiable(status)
        }
        if !unwantedStatuses.isEmpty { await removeUnwanted() }
        var isAlone = false
        while true {
            let seen = core.flights.endCount
            epoch = cache.store.epoch
            // The disk is only read if memory is not enough.
            hasLookedIntoDisk = !cache.store.hasDisk || ignoresStored
            if let answer = immediateResponse() { return answer }
            if case .serve(let answer) = decision { return try await stored(answer) }
            let mayShare = !isAlone && call.method == .get && core.flights.mayShare(request.key)
            if mayShare, !servesBeforeValidation, !request.isOffline,
                let member = core.flights.join(request.key, makeKey)
            {
                if let answer = try await response(ofShared: member, isFirst: false) { return answer }
                isAlone = true
                continue
            }
            if !hasLookedIntoDisk { await lookIntoDisk() }
            if control.isCancelled { throw CancellationError() }
            switch decision {
            case .serve(let answer), .serveStaleWhileRevalidating(let answer, _), .serveThenValidate(let answer, _):
                do {
                    let result = try await stored(answer)
                    if case .serveStaleWhileRevalidating = decision { revalidate(found[answer.variant]) }
                    return result
                } catch let error as HTTPError where error.code == .cachedBodyCorrupted {
                    // The entry may still exist: the file system failed to read it, and may fail again.
                    ignoresStored = true
                    continue
                }
            case .unsatisfiable(let status): return unsatisfiable(status)
            case .forward(let plan) where !request.isShareable: return try await direct(plan.fields)
            case .forward, .validate: break
            }
            let key = mayShare ? makeKey() : nil
            let answer: StreamedResponse?
            switch core.flights.enter(key, seen: seen, make: { makeFlight(isUnattended: false) }) {
            case .repeatLookup: continue
            case .joined(let member): answer = try await response(ofShared: member, isFirst: false)
            case .first(let member):
                start(member.flight, as: key)
                answer = try await response(ofShared: member, isFirst: true)
            }
            if let answer { return answer }
            isAlone = isAlone || mayShare
        }
    }

    /// Returns the response from memory without waiting; otherwise `nil`, and ``decision`` is based on memory.
    mutating func immediateResponse() -> StreamedResponse? {
        decide(on: ignoresStored ? [] : cache.store.inMemory(request.key))
        guard case .serve(let answer) = decision, call.supplement?.verification == nil else { return nil }
        let response = found[answer.variant]
        let body = answer.body(of: response)
        if case .file = body { return nil }
        // The longer path reports a content coding that cannot be decoded.
        if answer.content == .whole, call.decodesContentCoding, answer.head.fields.contains("content-encoding") {
            return nil
        }
        cache.noteUse(of: response, answer)
        return make(answer, of: response, body, ResponseCacheInfo(answer.source, answer.status))
    }

    /// Removes stored responses with the statuses that caused a retry of the request.
    private func removeUnwanted() async {
        let (store, key, statuses) = (cache.store, request.key, unwantedStatuses)
        _ = await StoreWork.run(in: store, on: core.loop, until: call.totalDeadline) {
            for response in store.all(key) where statuses.contains(response.variant.head.status) {
                store.remove(response)
            }
        }
    }

    /// Creates the key of shared transfers, which costs more than a lookup in memory.
    func makeKey() -> FlightRegistry.Key { FlightRegistry.Key(request, of: call, cache: cache, dialer: dialer) }

    /// Whether a stored response is served although a request is sent as well. No transfer is then awaited.
    private var servesBeforeValidation: Bool {
        switch decision {
        case .serveStaleWhileRevalidating, .serveThenValidate: true
        case .serve, .validate, .forward, .unsatisfiable: false
        }
    }

    private mutating func decide(on found: [StoredResponse]) {
        self.found =
            unwantedStatuses.isEmpty ? found : found.filter { !unwantedStatuses.contains($0.variant.head.status) }
        decision = CacheDecision(request, variants: self.found.map(\.variant), now: .now, policy: cache.policy)
    }

    private mutating func lookIntoDisk() async {
        let (store, key) = (cache.store, request.key)
        hasLookedIntoDisk = true
        // Resuming a worker costs ten times as much as reading a small file from the page cache.
        if let found = store.allNonBlocking(key) { return decide(on: found) }
        let found = await StoreWork.run(in: store, on: core.loop, until: call.totalDeadline) { store.all(key) }
        decide(on: found ?? store.inMemory(key))
    }

    private func stored(_ answer: CachedResponse) async throws -> StreamedResponse {
        let response = found[answer.variant]
        let isPreview = if case .serveThenValidate = decision { true } else { false }
        let provenance = ResponseCacheInfo(answer.source, answer.status, isPreview: isPreview)
        let result = try await make(answer, of: response, provenance)
        cache.noteUse(of: response, answer)
        return result
    }

    /// Creates the response from a stored one.
    func make(_ answer: CachedResponse, of response: StoredResponse, _ provenance: ResponseCacheInfo) async throws
        -> StreamedResponse
    {
        let body = answer.body(of: response)
        var ahead: [UInt8] = []
        if case .file(let reader, let range) = body {
            // The first bytes are read before anything is returned: if they are damaged, it is a miss.
            let limit = Int(min(CachedBody.pieceByteCount, range.upperBound - range.lowerBound))
            ahead = try await CachedBody.read(reader, at: range.lowerBound, limit, for: call, control, on: core.loop)
        }
        let codings: [ContentCoding]
        do throws(ContentDecodingError) {
            codings = answer.content == .whole ? try call.codings(of: answer.head) : []
        } catch {
            throw HTTPError(
                .contentDecodingFailed, phase: .receivingBody, message: error.description, method: call.method,
                url: call.url, underlying: error)
        }
        // A body that does not satisfy the call's verification is handled like one that cannot be read.
        let verifier = answer.content == .none ? nil : call.supplement?.verification?.verifier(call.method.rawValue)
        // The trailers are those of the whole body.
        let hasTrailers = answer.content == .whole && response.variant.head.trailers != nil
        let framing = hasTrailers ? BodyFraming.chunked : .length(answer.byteCount(of: response))
        guard verifier?.begin(answer.head, framing) == nil else { throw CachedBody.damage(call) }
        return make(answer, of: response, body, ahead: ahead, codings: codings, verifier: verifier, provenance)
    }

    private func make(
        _ answer: CachedResponse, of response: StoredResponse, _ source: CachedBody.Source, ahead: [UInt8] = [],
        codings: [ContentCoding] = [], verifier: (any ContentVerifier)? = nil, _ provenance: ResponseCacheInfo
    ) -> StreamedResponse {
        let count = answer.byteCount(of: response)
        control.expectBody(of: count)
        let body = CachedBody(source, in: cache, of: response, ahead: ahead, verifier: verifier, loop: core.loop)
        return StreamedResponse(
            call: call, channel: .stored(body), head: answer.head, codings: codings, expectedContentLength: count,
            hasTrailers: response.variant.head.trailers != nil, interim: [], attempts: 0, waited: call.start,
            provenance: provenance)
    }

    /// Returns the response if only the cache may respond and cannot (RFC 9111 §5.2.1.7).
    private func unsatisfiable(_ status: CacheStatus) -> StreamedResponse {
        cache.count(\.unsatisfiable)
        let head = ResponseHead(status: 504, reason: "Gateway Timeout", fields: FieldBlock([("Content-Length", "0")]))
        return StreamedResponse(
            call: call, channel: .stored(CachedBody(.bytes([]), in: cache, of: nil, loop: core.loop)), head: head,
            codings: [], expectedContentLength: 0, hasTrailers: false, interim: [], attempts: 0, waited: call.start,
            provenance: ResponseCacheInfo(.cache, status))
    }

    /// Returns the stored response that may replace an error. It counts as used when the returned closure is called.
    /// - Parameter status: The status of the error; `nil` if there was no response.
    mutating func staleFallback(status: Int? = nil) async throws -> StaleFallback? {
        if !hasLookedIntoDisk { await lookIntoDisk() }
        guard let answer = cache.decider(request, after: decision, found).failed(with: status, now: .now) else {
            return nil
        }
        let response = found[answer.variant]
        let made: StreamedResponse
        do { made = try await make(answer, of: response, ResponseCacheInfo(.staleCache, answer.status)) } catch let
            error as HTTPError where error.code == .cachedBodyCorrupted || error.code == .timedOut
        { return nil }
        let (cache, url, count) = (cache, request.key.url, answer.byteCount(of: response))
        return { [control] in
            // The length of the replaced error may already have been set.
            control.expectBody(of: count)
            cache.store.noteUse(of: response)
            cache.count(\.staleOnErrors, served: count)
            cache.emit(.staleOnError(url: url, status: status))
            return made
        }
    }
}

extension ResponseCache {
    /// Records that a stored response was served.
    fileprivate func noteUse(of response: StoredResponse, _ answer: CachedResponse) {
        store.noteUse(of: response)
        store.promote(response)
        let byteCount = answer.byteCount(of: response)
        count {
            if answer.isStale { $0.staleHits &+= 1 } else { $0.hits &+= 1 }
            $0.bytesServed &+= byteCount
        }
    }
}

extension CachedResponse {
    /// The source of a stored response that the network has not just validated.
    fileprivate var source: HTTPExchange.Source { isStale ? .staleCache : .cache }

    /// Returns the part of the stored body that the response contains.
    private func range(of response: StoredResponse) -> Range<UInt64> {
        switch content {
        case .none: 0..<0
        case .whole: 0..<response.variant.bodyLength
        case .bytes(let range): range
        }
    }

    /// Returns the length of that part, in bytes.
    func byteCount(of response: StoredResponse) -> UInt64 {
        let range = range(of: response)
        return range.upperBound - range.lowerBound
    }

    fileprivate func body(of response: StoredResponse) -> CachedBody.Source {
        let range = range(of: response)
        if range.isEmpty { return .bytes([]) }
        return switch response.body {
        case .bytes(let bytes): .bytes(bytes[Int(range.lowerBound)..<Int(range.upperBound)])
        case .file(let reader): .file(reader, range)
        }
    }
}

/// The cache's information on a response: its source, its status, and a stored response that may replace it.
final class ResponseCacheInfo: ResponseProvenance {
    let source: HTTPExchange.Source
    let transfer: StreamedResponse?
    let setCookies: [[UInt8]]
    let isPreview: Bool
    /// The handling of the request by the cache, before the body of the flight was stored.
    private let initialStatus: CacheStatus
    /// The transfer that stores the body; `nil` if nothing is stored from now on.
    private let flight: CacheFlight?
    /// The stored response that replaces this error response, unless another attempt follows (RFC 5861 §4).
    private let staleFallback: StaleFallback?

    init(
        _ source: HTTPExchange.Source, _ status: CacheStatus, transfer: StreamedResponse? = nil,
        flight: CacheFlight? = nil, staleFallback: StaleFallback? = nil, setCookies: [[UInt8]] = [],
        isPreview: Bool = false
    ) {
        (self.source, initialStatus, self.transfer, self.flight) = (source, status, transfer, flight)
        (self.staleFallback, self.setCookies, self.isPreview) = (staleFallback, setCookies, isPreview)
    }

    /// The handling so far, with `stored` once the body of the flight is stored.
    private var status: CacheStatus {
        var status = initialStatus
        if flight?.representation != nil { status.isStored = true }
        return status
    }

    var cacheStatus: String { status.text }

    // A stored response is a hit, even if it is a 504.
    var isUnsatisfied: Bool { source == .cache && !initialStatus.isHit }

    var detached: any ResponseProvenance {
        transfer == nil && flight == nil && staleFallback == nil
            ? self : ResponseCacheInfo(source, status, isPreview: isPreview)
    }

    func useFallback() -> StreamedResponse? { staleFallback?() }
}

/// Returns the stored response that replaces an error (RFC 5861 §4), and counts and reports this use.
typealias StaleFallback = @Sendable () -> StreamedResponse

extension SessionCore {
    /// The transfers that calls of the session share.
    nonisolated var flights: FlightRegistry { attachment { FlightRegistry() } }
}
