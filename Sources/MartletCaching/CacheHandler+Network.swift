import MartletFeatureSettings
import MartletCore
import MartletCache
import Synchronization

extension CacheHandler {
    // MARK: Shared transfers

    /// Returns the response of a shared transfer; `nil` if the request must be sent separately.
    mutating func response(ofShared member: FlightMember, isFirst: Bool) async throws -> StreamedResponse? {
        let flight = member.flight
        switch try await member.outcome(for: call, control) {
        case .failed(let error):
            // Other calls have caused the cancellation of the transfer.
            if error is CancellationError, !isFirst { return nil }
            throw error
        case .stored(let response, let answer, let network):
            // The requests may differ in the fields of tracing.
            guard isFirst || member.wasEarly && VaryRule.matches(response.head, request) else { return nil }
            let provenance = ResponseCacheInfo(
                .validatedCache, answer.status, transfer: isFirst ? network : nil, setCookies: network.setCookies)
            let result = try await make(answer, of: response, provenance)
            cache.store.noteUse(of: response)
            cache.count(isFirst ? \.validated : \.shared, served: answer.byteCount(of: response))
            return result
        case .offer(let offer, _) where offer.hasStaleFallback:
            guard isFirst || member.wasEarly else { return nil }
            guard flight.claim(isFirst: isFirst) != nil else {
                return try await staleFallback(status: offer.network.head.status)?()
            }
            return take(over: offer, flight, staleFallback: try await staleFallback(for: offer.network))
        case .offer:
            core.flights.note(request.key, isShareable: false)
            return flight.claim(isFirst: isFirst).map { take(over: $0, flight, staleFallback: nil) }
        case .transfer(let transfer, _):
            let mayShare =
                isFirst
                || SharingRule.allows(
                    transfer.variant, for: request, requestedBefore: member.wasEarly, now: .now, policy: cache.policy)
            if isFirst { core.flights.note(request.key, isShareable: true) }
            guard mayShare, !member.isDetached else { return nil }
            cache.store.noteUse(of: nil)
            cache.count(isFirst ? \.misses : \.shared)
            var status = transfer.status
            status.isCollapsed = !isFirst
            let network = transfer.network
            control.expectBody(of: network.expectedContentLength)
            return network.passed(
                to: call, channel: .stored(CachedBody(.transfer(member), in: cache, of: nil, loop: core.loop)),
                provenance: ResponseCacheInfo(.network, status, transfer: isFirst ? network : nil, flight: flight))
        }
    }

    /// Passes the network's response and its exchange to the call.
    private func take(over offer: CacheFlight.Offer, _ flight: CacheFlight, staleFallback: StaleFallback?)
        -> StreamedResponse
    {
        let network = offer.network
        if control.isExposed { flight.gate.pass(to: control) }
        if let exchange = network.channel.heldExchange {
            exchange.adopt(totalDeadline: call.totalDeadline)
            control.begin(.exchanging(exchange))
        }
        control.expectBody(of: network.expectedContentLength)
        if staleFallback == nil {
            cache.store.noteUse(of: nil)
            cache.count(\.misses)
        }
        return network.passed(
            to: call, channel: network.channel.adopted(by: UserCode(call, control: control, loop: core.loop)),
            provenance: ResponseCacheInfo(.network, offer.status, staleFallback: staleFallback))
    }

    /// Returns the stored response that may replace an error of the network. Ends the exchange if this fails.
    private mutating func staleFallback(for network: StreamedResponse) async throws -> StaleFallback? {
        do { return try await staleFallback(status: network.head.status) } catch {
            network.finish()
            throw error
        }
    }

    func makeFlight(isUnattended: Bool) -> CacheFlight {
        // A validation in the background is not part of a call, so it is not traced.
        let (store, epoch, key) = (cache.store, epoch, request.key)
        return CacheFlight(loop: core.loop, tracer: isUnattended ? nil : control.tracer, isUnattended: isUnattended) {
            store.holds(epoch, for: key)
        }
    }

    /// Starts a transfer.
    /// - Parameter ended: Called when requests can no longer join the transfer by its key.
    func start(_ flight: CacheFlight, as key: FlightRegistry.Key?, _ ended: @escaping @Sendable () -> Void = {}) {
        var call = call
        let receive = call.options.onInterimResponse
        if flight.isUnattended {
            call = call.unobserved
            // The caller already has its response.
            if receive != nil { call = call.reportingInterimResponses(to: nil) }
        } else if let receive {
            // The caller may leave the transfer, which then continues for the others.
            call = call.reportingInterimResponses { [weak flight] response in
                if flight?.hasFirstMember == true { receive(response) }
            }
        }
        let driver = FlightDriver(
            flight: flight, cache: cache, core: core, dialer: dialer, call: call, request: request, decision: decision,
            found: found, epoch: epoch)
        // Unstructured, since all members share the transfer, and each may leave it.
        Task { [flights = core.flights] in
            await driver.run {
                if let key { flights.end(key, flight) }
                ended()
            }
        }
    }

    /// Validates a response that was served stale. All requests that it serves share the validation (RFC 5861 §3).
    func revalidate(_ response: StoredResponse) {
        guard cache.beginValidation(of: response) else { return }
        let key = makeKey()
        let flight = core.flights.startDetached(key) { makeFlight(isUnattended: true) }
        guard let flight else { return cache.endValidation(of: response) }
        guard let number = core.calls.enter(flight.control, call, .data) else {
            // The session accepts no more calls; requests that have joined are sent separately.
            flight.decide(.failed(CancellationError()))
            cache.endValidation(of: response)
            return core.flights.end(key, flight)
        }
        cache.count(\.revalidations)
        start(flight, as: key) { [core, cache] in
            cache.endValidation(of: response)
            core.calls.leave(number)
        }
    }

    // MARK: Requests that bypass the store

    /// Returns the response to a request that is not shared: for a range or a head, or with the caller's conditions.
    mutating func direct(_ fields: FieldBlock) async throws -> StreamedResponse {
        let seen = cache.store.changeEpoch
        let sent = cache.store.requestTime(for: request.key.url, now: .now)
        let network = try await send(fields)
        let decider = cache.decider(request, after: decision, found)
        var decided = decider.received(network.head, requestTime: sent, responseTime: .now)
        if network.isFromUnverifiedServer(dialer) { decided = decided.changingNothing }
        _ = await cache.carryOut(
            decided, for: request, found, epoch, since: seen, on: core.loop, until: call.totalDeadline)
        var fallback: StaleFallback?
        if case .staleOnError = decided.delivery { fallback = try await staleFallback(for: network) }
        if fallback == nil { cache.count(request.isNoStore ? \.bypasses : \.misses) }
        return network.passed(
            to: call, provenance: ResponseCacheInfo(.network, decided.status, staleFallback: fallback))
    }

    private func send(_ fields: FieldBlock) async throws -> StreamedResponse {
        try await CallRunner(core: core, dialer: dialer, call: call.asking(fields), control: control)
            .runBelowCache()
    }

    /// Returns the response to a request that may change resources (RFC 9111 §4.4).
    func changing() async throws -> StreamedResponse {
        let network = try await send(request.fieldsForOthers)
        let url = call.url
        let targets = InvalidationRule.targets(
            method: call.method.rawValue, url: url.absoluteForm, response: network.head
        ) { reference in (try? url.resolving(reference))?.absoluteForm }
        if !targets.isEmpty {
            let (store, partition, now) = (cache.store, request.key.partition, WallTime.now)
            // Takes effect immediately; the changes on disk may block.
            for target in targets { store.noteOutdated(target, at: now) }
            @Sendable func invalidate() {
                for target in targets { store.invalidate(CacheKey(url: target, partition: partition), others: now) }
            }
            if cache.isTransient {
                invalidate()
            } else {
                _ = await StoreWork.run(in: store, on: core.loop, until: call.totalDeadline, invalidate)
            }
        }
        cache.count(\.bypasses)
        var status = CacheStatus.nothing
        (status.forwarding, status.forwardStatus) = (.method, network.head.status)
        return network.passed(to: call, provenance: ResponseCacheInfo(.network, status))
    }
}

/// Work on the store for a response. The response waits for it, so that later requests find the result.
final class StoreWork<Value: Sendable>: Sendable {
    private struct State {
        var value: Value?
        var waiter: OneShot<Void>?
    }

    private let store: ResponseStore
    private let loop: EventLoop
    /// Shared by the worker and the one task that waits.
    private let state = Mutex(State())

    init(in store: ResponseStore, on loop: EventLoop) { (self.store, self.loop) = (store, loop) }

    /// Runs a closure on a worker to its end, and returns its result as ``value(until:)`` does.
    static func run(
        in store: ResponseStore, on loop: EventLoop, until end: MonotonicTime = .distantFuture,
        _ body: @escaping @Sendable () -> Value
    ) async -> Value? {
        let work = StoreWork(in: store, on: loop)
        BlockingThreadPool.shared.submit { work.finish(body()) }
        return await work.value(until: end)
    }

    func finish(_ value: Value) {
        let waiter = state.withLock { state in
            state.value = value
            return state.waiter.take()
        }
        waiter?.fulfill(())
    }

    /// Returns the result; `nil` if another process blocks the directory, at the deadline, or when cancelled.
    func value(until end: MonotonicTime = .distantFuture) async -> Value? {
        while true {
            let waiter = OneShot<Void>()
            let value = state.withLock { state in
                if state.value == nil { state.waiter = waiter }
                return state.value
            }
            if let value { return value }
            let deadline = MonotonicTime.now().advanced(by: .milliseconds(20))
            guard case .timedOut = await waiter.wait(until: deadline, on: loop) else { continue }
            if store.isHeldUp || Task.isCancelled || MonotonicTime.now() >= end { return nil }
        }
    }
}
