import MartletCache
import MartletConnections
import MartletTransport
import MartletWire

/// Takes one request of a call past the cache: looks it up, asks the network where it has to, and stores what comes.
///
/// What decides are ``CacheDecision``, ``ResponseDecider`` and ``InvalidationRule``; here their decisions are carried out.
struct CacheStep {
    private let cache: ResponseCache
    private let core: SessionCore
    private let dialer: Dialer
    private let call: Call
    private let control: TransferControl
    private let request: CacheRequest
    /// Whether what is stored is left alone, since it turned out damaged.
    private var ignoresStored: Bool
    /// Whether what was found is all that there is.
    private var hasLookedIntoDisk = false

    private var found: [StoredResponse] = []
    private var decision: CacheDecision
    private var epoch: InvalidationLedger.Epoch

    init(
        cache: ResponseCache, core: SessionCore, dialer: Dialer, call: Call, control: TransferControl,
        ignoresStored: Bool
    ) {
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
        var isAlone = false
        while true {
            let seen = core.flights.endCount
            epoch = cache.store.epoch
            // The memory is looked into here; the disk only where the memory does not do.
            hasLookedIntoDisk = !cache.store.hasDisk || ignoresStored
            decide(on: ignoresStored ? [] : cache.store.inMemory(request.key))
            if case .serve(let answer) = decision { return try await stored(answer) }
            let key = FlightRegistry.Key(
                request, cache: cache, dialer: dialer, proxy: call.proxy?.description)
            let mayShare = !isAlone && call.method == .get
            if mayShare, !isAnsweredStale, !request.isOffline, let member = core.flights.join(key) {
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
                revalidate(key)
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

    /// Whether something stored answers, though the network is to be asked about it: nobody waits for that.
    private var isAnsweredStale: Bool {
        switch decision {
        case .serveStaleWhileRevalidating, .serveThenValidate: true
        case .serve, .validate, .forward, .unsatisfiable: false
        }
    }

    private mutating func decide(on found: [StoredResponse]) {
        self.found = found
        decision = CacheDecision(request, variants: found.map(\.variant), now: .now, policy: cache.policy)
    }

    private mutating func lookIntoDisk() async {
        let (store, key) = (cache.store, request.key)
        hasLookedIntoDisk = true
        // A worker that has to be woken costs ten times what a small file does that is in the kernel's memory.
        if let found = store.allAtHand(key) { return decide(on: found) }
        decide(on: await BlockingWorkers.shared.run { store.all(key) })
    }

    // MARK: From the store

    /// The answer of what is stored, where that can still be read; what cannot is gone then.
    private mutating func storedIfWhole(_ answer: CachedAnswer, isPreview: Bool = false) async throws
        -> Answer?
    {
        do {
            return try await stored(answer, isPreview: isPreview)
        } catch let error as HTTPError where error.code == .storedBodyDamaged {
            // It need not be gone: the file system may refuse to read it, and would again.
            ignoresStored = true
            return nil
        }
    }

    private func stored(_ answer: CachedAnswer, isPreview: Bool = false) async throws -> Answer {
        let response = found[answer.variant]
        let result = try await make(
            answer, of: response, source: answer.isStale ? .staleCache : .cache, isPreview: isPreview)
        cache.store.noteUse(of: response)
        cache.store.promote(response)
        cache.count(answer.isStale ? .staleHit : .hit, served: answer.byteCount(of: response))
        return result
    }

    /// Makes an answer of what is stored.
    private func make(
        _ answer: CachedAnswer, of response: StoredResponse, source: HTTPExchange.Source,
        setCookies: [[UInt8]] = [], isPreview: Bool = false
    ) async throws -> Answer {
        var body = CachedBody.Source.bytes([])
        var ahead: [UInt8] = []
        let count = answer.byteCount(of: response)
        if count > 0 {
            var range = UInt64(0)..<response.variant.bodyLength
            if case .bytes(let part) = answer.content { range = part }
            switch response.body {
            case .bytes(let bytes): body = .bytes(bytes[Int(range.lowerBound)..<Int(range.upperBound)])
            case .file(let reader):
                body = .file(reader, range)
                // The first bytes are read before anything is answered: where they are damaged, it is a miss.
                let limit = Int(min(256 * 1024, range.upperBound - range.lowerBound))
                let start = range.lowerBound
                ahead = try await CachedBody.read(reader, at: start, limit, for: call)
            }
        }
        let codings: [ContentCoding]
        do throws(ContentDecodingError) {
            codings = answer.content == .whole ? try call.codings(of: answer.head) : []
        } catch {
            throw HTTPError(
                .contentDecodingFailed, phase: .receivingBody, message: error.description,
                origin: call.url.origin.description, underlying: error)
        }
        control.download?.update { $0.totalByteCount = count }
        return Answer(
            call: call,
            channel: .cache(CachedBody(body, in: cache, of: response, ahead: ahead, loop: core.loop)),
            connection: nil, head: answer.head, codings: codings, announcedByteCount: count,
            hasTrailers: response.head.trailers != nil, interim: [], attempts: 0, waited: call.start,
            caching: AnswerCaching(source, answer.status, setCookies: setCookies, isPreview: isPreview))
    }

    /// The answer where nothing else may answer (RFC 9111 §5.2.1.7).
    private func unsatisfiable(_ status: CacheStatus) -> Answer {
        let head = ResponseHead(
            status: 504, reason: "Gateway Timeout", fields: FieldBlock([("Content-Length", "0")]))
        return Answer(
            call: call, channel: .cache(CachedBody(.bytes([]), in: cache, of: nil, loop: core.loop)),
            connection: nil,
            head: head, codings: [], announcedByteCount: 0, hasTrailers: false, interim: [], attempts: 0,
            waited: call.start, caching: AnswerCaching(.cache, status))
    }

    // MARK: By the network

    /// What may stand in for an answer that did not come; `nil` where nothing may.
    mutating func staleAnswer(status: Int? = nil) async throws -> Answer? {
        guard let standIn = try await standIn(status: status) else { return nil }
        standIn.whenUsed()
        return standIn.answer
    }

    /// What may stand in for an error, without counting it yet: another attempt may still succeed.
    /// - Parameter status: The server's error; `nil` where there was no answer.
    private mutating func standIn(status: Int?) async throws -> StandIn? {
        if !hasLookedIntoDisk { await lookIntoDisk() }
        guard let answer = cache.decider(request, after: decision, found).failed(now: .now) else {
            return nil
        }
        let response = found[answer.variant]
        let made: Answer
        do {
            made = try await make(answer, of: response, source: .staleCache)
        } catch let error as HTTPError where error.code == .storedBodyDamaged {
            return nil
        }
        let (cache, url, count) = (cache, request.key.url, answer.byteCount(of: response))
        return StandIn(answer: made) {
            cache.store.noteUse(of: response)
            cache.count(.staleOnError, served: count)
            cache.tell(.staleOnError(url: url, status: status))
        }
    }

    /// The answer of a shared transfer; `nil` where it is not for this request, which has to ask for itself then.
    /// - Parameter isFirst: Whether the transfer was begun for it.
    private mutating func landed(_ member: FlightMember, isFirst: Bool) async throws -> Answer? {
        let flight = member.flight
        switch try await member.landing(for: call, control) {
        case .failed(let error):
            // One that was given up was meant for others.
            if error is CancellationError, !isFirst { return nil }
            throw error
        case .stored(let response, let answer):
            guard isFirst || flight.wasEarly(member.number) else { return nil }
            let result = try await make(
                answer, of: response, source: .validatedCache, setCookies: flight.setCookies)
            cache.store.noteUse(of: response)
            cache.count(isFirst ? .validated : .shared, served: answer.byteCount(of: response))
            return result
        case .error:
            guard isFirst || flight.wasEarly(member.number) else { return nil }
            let status = flight.answer?.network.head.status
            guard let network = flight.claim() else { return try await staleAnswer(status: status) }
            do {
                let standIn = try await standIn(status: status)
                return take(over: network, flight, standIn: standIn)
            } catch {
                network.finish()
                throw error
            }
        case .exchange:
            guard let network = flight.claim() else { return nil }
            return take(over: network, flight, standIn: nil)
        case .transfer(let variant):
            let mayShare =
                isFirst
                || SharingRule.allows(
                    variant, for: request, askedBefore: flight.wasEarly(member.number), now: .now,
                    policy: cache.policy)
            guard mayShare, let (network, status) = flight.answer else { return nil }
            cache.store.noteUse(of: nil)
            cache.count(isFirst ? .miss : .shared)
            var told = status
            told.isCollapsed = !isFirst
            control.download?.update { $0.totalByteCount = network.announcedByteCount }
            return network.passed(
                to: call, channel: .cache(CachedBody(.transfer(member), in: cache, of: nil, loop: core.loop)),
                caching: AnswerCaching(.network, told, transfer: isFirst ? network : nil))
        }
    }

    /// Makes the network's answer the call's own.
    private func take(over network: Answer, _ flight: CacheFlight, standIn: StandIn?) -> Answer {
        if control.isExposed { flight.gate.pass(to: control) }
        if case .exchange(let exchange) = network.channel {
            exchange.adopt(totalDeadline: call.totalDeadline)
            control.begin(.exchanging(exchange))
        }
        control.download?.update { $0.totalByteCount = network.announcedByteCount }
        if standIn == nil {
            cache.store.noteUse(of: nil)
            cache.count(.miss)
        }
        let status = flight.answer?.status ?? CacheStatus()
        return network.passed(to: call, caching: AnswerCaching(.network, status, standIn: standIn))
    }

    private func makeFlight(isUnattended: Bool) -> CacheFlight {
        // What goes on behind a call that has its answer is no part of it.
        let (store, epoch, url) = (cache.store, epoch, request.key.url)
        return CacheFlight(
            loop: core.loop, watcher: isUnattended ? nil : control.watcher, isUnattended: isUnattended
        ) { store.holds(epoch, for: url) }
    }

    private func start(_ flight: CacheFlight, _ ended: @escaping @Sendable () -> Void) {
        let driver = FlightDriver(
            flight: flight, cache: cache, core: core, dialer: dialer,
            call: flight.isUnattended ? call.unobserved : call, request: request, decision: decision,
            found: found, epoch: epoch)
        let task = Task { await driver.run(ended) }
        _ = task
    }

    /// Validates what was served stale, behind its caller's back, once for all who ask meanwhile (RFC 5861 §3).
    private func revalidate(_ key: FlightRegistry.Key) {
        let flight = core.flights.enterUnattended(key) { makeFlight(isUnattended: true) }
        guard let flight else { return }
        guard let number = core.calls.enter(flight.control) else {
            // The session takes no more; whoever has joined meanwhile asks for itself.
            flight.land(.failed(CancellationError()))
            return core.flights.end(key, flight)
        }
        cache.countRevalidation()
        let (core, flights) = (core, core.flights)
        start(flight) {
            flights.end(key, flight)
            core.calls.leave(number)
        }
    }

    // MARK: Past the store

    /// The answer to a request that cannot be shared: of part of a representation, of its head, or under conditions of the
    /// caller's.
    private mutating func direct(_ fields: FieldBlock) async throws -> Answer {
        let sent = WallTime.now
        let network = try await runner(fields).run()
        let decider = cache.decider(request, after: decision, found)
        let decided = decider.received(network.head, requestTime: sent, responseTime: .now)
        _ = await cache.carryOut(decided, found, epoch)
        var fallback: StandIn?
        if case .staleOnError = decided.delivery {
            do {
                fallback = try await standIn(status: network.head.status)
            } catch {
                network.finish()
                throw error
            }
        }
        if fallback == nil { cache.count(request.isNoStore ? .bypass : .miss) }
        return network.passed(
            to: call, caching: AnswerCaching(.network, decided.status, standIn: fallback))
    }

    private func runner(_ fields: FieldBlock) -> CallRunner {
        CallRunner(
            core: core, dialer: dialer, call: fields.isEmpty ? call : call.asking(fields), control: control)
    }

    /// The answer to a request that may change what is there (RFC 9111 §4.4).
    private func changing() async throws -> Answer {
        let network = try await runner(request.fieldsForOthers).run()
        let url = call.url
        let targets = InvalidationRule.targets(
            method: call.method.rawValue, url: url.absoluteForm, response: network.head
        ) { reference in (try? url.resolving(reference))?.absoluteForm }
        if !targets.isEmpty {
            let (store, partition) = (cache.store, request.key.partition)
            await BlockingWorkers.shared.run {
                for target in targets { store.invalidate(CacheKey(url: target, partition: partition)) }
            }
        }
        cache.count(.bypass)
        let status = CacheStatus(forwarding: .method, forwardStatus: network.head.status)
        return network.passed(to: call, caching: AnswerCaching(.network, status))
    }
}

extension CachedAnswer {
    /// How many bytes of a stored body it has.
    func byteCount(of response: StoredResponse) -> UInt64 {
        switch content {
        case .none: 0
        case .whole: response.variant.bodyLength
        case .bytes(let range): range.upperBound - range.lowerBound
        }
    }
}
