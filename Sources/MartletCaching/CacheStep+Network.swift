import MartletCredentials
import MartletCore
import MartletCache
import MartletConnections
import MartletTransport
import MartletWire
import Synchronization

/// What is asked of the network.
extension CacheStep {
    // MARK: Shared transfers

    /// The answer of a shared transfer; `nil` where it is not for this request, which has to ask for itself then.
    /// - Parameter isFirst: Whether the transfer was begun for it.
    mutating func landed(_ member: FlightMember, isFirst: Bool) async throws -> Answer? {
        let flight = member.flight
        switch try await member.landing(for: call, control) {
        case .failed(let error):
            // One that was given up was meant for others.
            if error is CancellationError, !isFirst { return nil }
            throw error
        case .stored(let response, let answer, let setCookies):
            guard isFirst || flight.wasEarly(member.number) else { return nil }
            let result = try await make(answer, of: response, source: .validatedCache, setCookies: setCookies)
            cache.store.noteUse(of: response)
            cache.count(isFirst ? \.validated : \.shared, served: answer.byteCount(of: response))
            return result
        case .offer(let offer, _) where offer.hasStandIn:
            guard isFirst || flight.wasEarly(member.number) else { return nil }
            let status = offer.network.head.status
            guard flight.claim(isFirst: isFirst) != nil else { return try await staleAnswer(status: status) }
            do {
                return take(over: offer, flight, standIn: try await standIn(status: status))
            } catch {
                offer.network.finish()
                throw error
            }
        case .offer:
            core.flights.note(request.key, isShareable: false)
            return flight.claim(isFirst: isFirst).map { take(over: $0, flight, standIn: nil) }
        case .transfer(let transfer, _):
            let mayShare =
                isFirst
                || SharingRule.allows(
                    transfer.variant, for: request, askedBefore: flight.wasEarly(member.number), now: .now,
                    policy: cache.policy)
            if isFirst { core.flights.note(request.key, isShareable: true) }
            guard mayShare, !flight.hasDetached(member.number) else { return nil }
            cache.store.noteUse(of: nil)
            cache.count(isFirst ? \.misses : \.shared)
            var status = transfer.status
            status.isCollapsed = !isFirst
            let network = transfer.network
            control.download?.update { $0.totalByteCount = network.announcedByteCount }
            return network.passed(
                to: call,
                channel: .stored(CachedBody(.transfer(member), in: cache, of: nil, loop: core.loop)),
                provenance: AnswerCaching(.network, status, transfer: isFirst ? network : nil))
        }
    }

    /// Makes the network's answer the call's own.
    private func take(over offer: CacheFlight.Offer, _ flight: CacheFlight, standIn: StandIn?) -> Answer {
        let network = offer.network
        if control.isExposed { flight.gate.pass(to: control) }
        if case .exchange(let exchange) = network.channel {
            exchange.adopt(totalDeadline: call.totalDeadline)
            control.begin(.exchanging(exchange))
        }
        control.download?.update { $0.totalByteCount = network.announcedByteCount }
        if standIn == nil {
            cache.store.noteUse(of: nil)
            cache.count(\.misses)
        }
        return network.passed(to: call, provenance: AnswerCaching(.network, offer.status, standIn: standIn))
    }

    func makeFlight(isUnattended: Bool) -> CacheFlight {
        // What goes on behind a call that has its answer is no part of it.
        let (store, epoch, url) = (cache.store, epoch, request.key.url)
        return CacheFlight(
            loop: core.loop, watcher: isUnattended ? nil : control.watcher, isUnattended: isUnattended
        ) { store.holds(epoch, for: url) }
    }

    func start(_ flight: CacheFlight, _ ended: @escaping @Sendable () -> Void) {
        let driver = FlightDriver(
            flight: flight, cache: cache, core: core, dialer: dialer,
            call: flight.isUnattended ? call.unobserved : call, request: request, decision: decision,
            found: found, epoch: epoch)
        // Unstructured, since it is for all who join, of whom each may leave.
        Task { await driver.run(ended) }
    }

    /// Validates what was served stale, behind its caller's back, once for all who ask meanwhile (RFC 5861 §3).
    func revalidate() {
        let key = makeKey()
        let flight = core.flights.enterUnattended(key) { makeFlight(isUnattended: true) }
        guard let flight else { return }
        guard let number = core.calls.enter(flight.control) else {
            // The session takes no more; whoever has joined meanwhile asks for itself.
            flight.land(.failed(CancellationError()))
            return core.flights.end(key, flight)
        }
        cache.count(\.revalidations)
        let (core, flights) = (core, core.flights)
        start(flight) {
            flights.end(key, flight)
            core.calls.leave(number)
        }
    }

    // MARK: Past the store

    /// The answer to a request that cannot be shared: of part of a representation, of its head, or under conditions of the
    /// caller's.
    mutating func direct(_ fields: FieldBlock) async throws -> Answer {
        let sent = cache.store.requestTime(for: request.key.url, now: .now)
        let network = try await runner(fields).run()
        let decider = cache.decider(request, after: decision, found)
        let decided = decider.received(network.head, requestTime: sent, responseTime: .now)
        _ = await cache.carryOut(decided, found, epoch, on: core.loop)
        var fallback: StandIn?
        if case .staleOnError = decided.delivery {
            do {
                fallback = try await standIn(status: network.head.status)
            } catch {
                network.finish()
                throw error
            }
        }
        if fallback == nil { cache.count(request.isNoStore ? \.bypasses : \.misses) }
        return network.passed(
            to: call, provenance: AnswerCaching(.network, decided.status, standIn: fallback))
    }

    private func runner(_ fields: FieldBlock) -> CallRunner {
        CallRunner(
            core: core, dialer: dialer, call: fields.isEmpty ? call : call.asking(fields), control: control)
    }

    /// The answer to a request that may change what is there (RFC 9111 §4.4).
    func changing() async throws -> Answer {
        let network = try await runner(request.fieldsForOthers).run()
        let url = call.url
        let targets = InvalidationRule.targets(
            method: call.method.rawValue, url: url.absoluteForm, response: network.head
        ) { reference in (try? url.resolving(reference))?.absoluteForm }
        if !targets.isEmpty {
            let (store, partition, now) = (cache.store, request.key.partition, WallTime.now)
            // Before the folder, which may be held up.
            for target in targets { store.noteOutdated(target, at: now) }
            _ = await StoreWork.run(in: store, on: core.loop) {
                for target in targets {
                    store.invalidate(CacheKey(url: target, partition: partition), others: now)
                }
            }
        }
        cache.count(\.bypasses)
        var status = CacheStatus.nothing
        (status.forwarding, status.forwardStatus) = (.method, network.head.status)
        return network.passed(to: call, provenance: AnswerCaching(.network, status))
    }
}

/// Work on the store on behalf of a response. The response waits for it, so that whoever asks next finds what was stored;
/// but not while another process keeps the folder locked: then the work goes on alone.
final class StoreWork<Value: Sendable>: Sendable {
    private struct State {
        var value: Value?
        var waiter: OneShot<Void>?
    }

    private let store: ResponseStore
    private let loop: EventLoop
    /// Guards the above: the worker and the one task that waits.
    private let state = Mutex(State())

    init(in store: ResponseStore, on loop: EventLoop) {
        self.store = store
        self.loop = loop
    }

    /// Runs a closure that blocks on files on a worker.
    /// - Returns: What it returns; `nil` where the folder is held up. The closure still runs to its end.
    static func run(
        in store: ResponseStore, on loop: EventLoop, _ body: @escaping @Sendable () -> Value
    ) async -> Value? {
        let work = StoreWork(in: store, on: loop)
        BlockingWorkers.shared.submit { work.finish(body()) }
        return await work.value
    }

    /// Notes what came of it.
    func finish(_ value: Value) {
        let waiter = state.withLock { state in
            state.value = value
            return state.waiter.take()
        }
        waiter?.fulfil(())
    }

    /// The result; `nil` where the folder is held up.
    var value: Value? {
        get async {
            while true {
                let waiter = OneShot<Void>()
                let value = state.withLock { state in
                    if state.value == nil { state.waiter = waiter }
                    return state.value
                }
                if let value { return value }
                let deadline = MonotonicTime.now().advanced(by: .milliseconds(20))
                if case .timedOut = await waiter.wait(until: deadline, on: loop), store.isHeldUp {
                    return nil
                }
            }
        }
    }
}
