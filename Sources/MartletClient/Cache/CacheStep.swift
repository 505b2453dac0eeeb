import MartletCache
import MartletConnections
import MartletTransport
import MartletWire

/// Takes one request of a call past the cache: looks it up, asks the network where it has to, and stores what comes.
///
/// What decides are ``CacheDecision``, ``ResponseDecider`` and ``InvalidationRule``; here their decisions are carried out. What
/// the store answers is made in one extension, what the network does in another.
struct CacheStep {
    let cache: ResponseCache
    let core: SessionCore
    let dialer: Dialer
    let call: Call
    let control: TransferControl
    let request: CacheRequest
    /// Whether what is stored is left alone, since it turned out damaged.
    var ignoresStored: Bool
    /// Statuses that are not taken from the store: the request is made again because of them.
    let unwantedStatuses: Set<Int>
    /// Whether what was found is all that there is.
    var hasLookedIntoDisk = false

    var found: [StoredResponse] = []
    var decision: CacheDecision
    var epoch: InvalidationLedger.Epoch

    init(
        cache: ResponseCache, core: SessionCore, dialer: Dialer, call: Call, control: TransferControl,
        ignoresStored: Bool, unwantedStatuses: Set<Int> = []
    ) {
        self.unwantedStatuses = unwantedStatuses
        self.cache = cache
        self.core = core
        self.dialer = dialer
        self.call = call
        self.control = control
        self.ignoresStored = ignoresStored
        request = call.cacheRequest()
        epoch = cache.store.epoch
        decision = .unsatisfiable(CacheStatus())
    }

    /// The answer to the request.
    /// - Throws: ``HTTPError``, or `CancellationError`.
    mutating func answer() async throws -> Answer {
        guard call.method == .get || call.method == .head, !call.body.isPresent else {
            guard request.isOffline else { return try await changing() }
            cache.count(.unsatisfiable)
            return unsatisfiable(CacheStatus(detail: "only-if-cached, and the method is never answered here"))
        }
        if !unwantedStatuses.isEmpty { await removeUnwanted() }
        var isAlone = false
        while true {
            let seen = core.flights.endCount
            epoch = cache.store.epoch
            // The memory is looked into here; the disk only where the memory does not do.
            hasLookedIntoDisk = !cache.store.hasDisk || ignoresStored
            decide(on: ignoresStored ? [] : cache.store.inMemory(request.key))
            if case .serve(let answer) = decision { return try await stored(answer) }
            let mayShare = !isAlone && call.method == .get && core.flights.mayShare(request.key)
            if mayShare, !isAnsweredStale, !request.isOffline,
                let member = core.flights.join(request.key, makeKey)
            {
                if let answer = try await landed(member, isFirst: false) { return answer }
                isAlone = true
                continue
            }
            if !hasLookedIntoDisk { await lookIntoDisk() }
            switch decision {
            case .serve(let answer):
                if let answer = try await storedIfWhole(answer) { return answer }
                continue
            case .serveStaleWhileRevalidating(let answer, _):
                guard let stale = try await storedIfWhole(answer) else { continue }
                revalidate()
                return stale
            case .serveThenValidate(let answer, _):
                guard let preview = try await storedIfWhole(answer, isPreview: true) else { continue }
                return preview
            case .unsatisfiable(let status):
                cache.count(.unsatisfiable)
                return unsatisfiable(status)
            case .forward(let plan) where !plan.isShareable: return try await direct(plan.fields)
            case .forward, .validate: break
            }
            guard mayShare else {
                let flight = makeFlight(isUnattended: false)
                guard let member = flight.join() else { continue }
                start(flight) {}
                if let answer = try await landed(member, isFirst: true) { return answer }
                continue
            }
            let key = makeKey()
            switch core.flights.enter(key, seen: seen, make: { makeFlight(isUnattended: false) }) {
            case .lookAgain: continue
            case .joined(let member):
                if let answer = try await landed(member, isFirst: false) { return answer }
                isAlone = true
            case .first(let member):
                let (flights, flight) = (core.flights, member.flight)
                start(flight) { flights.end(key, flight) }
                if let answer = try await landed(member, isFirst: true) { return answer }
                isAlone = true
            }
        }
    }

    /// Removes what the request is made again because of; nothing that is stored behind it might do so.
    private func removeUnwanted() async {
        let (store, key, statuses) = (cache.store, request.key, unwantedStatuses)
        _ = await StoreWork.run(in: store, on: core.loop) {
            for response in store.all(key) where statuses.contains(response.variant.head.status) {
                store.remove(response)
            }
        }
    }

    /// What its answer would be shared by. It costs more than a look into memory, so it is made where it is needed.
    func makeKey() -> FlightRegistry.Key {
        FlightRegistry.Key(
            request, cache: cache, dialer: dialer, proxy: call.proxy?.description, pace: FlightPace(call))
    }

    /// Whether something stored answers, though the network is to be asked about it: nobody waits for that.
    private var isAnsweredStale: Bool {
        switch decision {
        case .serveStaleWhileRevalidating, .serveThenValidate: true
        case .serve, .validate, .forward, .unsatisfiable: false
        }
    }

    private mutating func decide(on found: [StoredResponse]) {
        self.found =
            unwantedStatuses.isEmpty
            ? found : found.filter { !unwantedStatuses.contains($0.variant.head.status) }
        decision = CacheDecision(
            request, variants: self.found.map(\.variant), now: .now, policy: cache.policy)
    }

    mutating func lookIntoDisk() async {
        let (store, key) = (cache.store, request.key)
        hasLookedIntoDisk = true
        // A worker that has to be woken costs ten times what a small file does that is in the kernel's memory.
        if let found = store.allAtHand(key) { return decide(on: found) }
        let found = await StoreWork.run(in: store, on: core.loop) { store.all(key) }
        decide(on: found ?? store.inMemory(key))
    }
}
