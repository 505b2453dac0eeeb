import MartletCredentials
import MartletContent
import MartletCore
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
        decision = .unsatisfiable(.nothing)
    }

    /// The answer to the request.
    /// - Throws: ``HTTPError``, or `CancellationError`.
    mutating func answer() async throws -> Answer {
        guard call.method == .get || call.method == .head, !call.body.isPresent else {
            guard request.isOffline else { return try await changing() }
            cache.count(\.unsatisfiable)
            var status = CacheStatus.nothing
            status.detail = "only-if-cached, and the method is never answered here"
            return unsatisfiable(status)
        }
        if !unwantedStatuses.isEmpty { await removeUnwanted() }
        var isAlone = false
        while true {
            let seen = core.flights.endCount
            epoch = cache.store.epoch
            // The memory is looked into here; the disk only where the memory does not do.
            hasLookedIntoDisk = !cache.store.hasDisk || ignoresStored
            if let answer = answerAtOnce() { return answer }
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
                cache.count(\.unsatisfiable)
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

    /// The answer of what the memory holds, where nothing has to be waited for; else `nil`, and ``decision`` is what follows from
    /// the memory.
    mutating func answerAtOnce() -> Answer? {
        decide(on: ignoresStored ? [] : cache.store.inMemory(request.key))
        guard case .serve(let answer) = decision else { return nil }
        let response = found[answer.variant]
        guard case .bytes(let bytes) = response.body else { return nil }
        let part: ArraySlice<UInt8>
        switch answer.content {
        case .none: part = []
        // What cannot be decoded is asked for again.
        case .whole:
            if call.undoesCoding, answer.head.fields.contains("content-encoding") { return nil }
            part = bytes[...]
        case .bytes(let range): part = bytes[Int(range.lowerBound)..<Int(range.upperBound)]
        }
        control.download?.update { $0.totalByteCount = answer.byteCount(of: response) }
        cache.noteUse(of: response, answer)
        return Answer(
            call, answer, CachedBody(.bytes(part), in: cache, of: response, loop: core.loop), of: response,
            codings: [], AnswerCaching(answer.source, answer.status))
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

/// What is answered from the store.
extension CacheStep {
    /// The answer of what is stored, where that can still be read; what cannot is gone then.
    mutating func storedIfWhole(_ answer: CachedAnswer, isPreview: Bool = false) async throws
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

    func stored(_ answer: CachedAnswer, isPreview: Bool = false) async throws -> Answer {
        let response = found[answer.variant]
        let result = try await make(answer, of: response, source: answer.source, isPreview: isPreview)
        cache.noteUse(of: response, answer)
        return result
    }

    /// Makes an answer of what is stored.
    func make(
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
            call, answer, CachedBody(body, in: cache, of: response, ahead: ahead, loop: core.loop),
            of: response, codings: codings,
            AnswerCaching(source, answer.status, setCookies: setCookies, isPreview: isPreview))
    }

    /// The answer where nothing else may answer (RFC 9111 §5.2.1.7).
    func unsatisfiable(_ status: CacheStatus) -> Answer {
        let head = ResponseHead(
            status: 504, reason: "Gateway Timeout", fields: FieldBlock([("Content-Length", "0")]))
        return Answer(
            call: call, channel: .stored(CachedBody(.bytes([]), in: cache, of: nil, loop: core.loop)),
            head: head, codings: [], announcedByteCount: 0, hasTrailers: false, interim: [], attempts: 0,
            waited: call.start, provenance: AnswerCaching(.cache, status))
    }

    // MARK: In the place of errors

    /// What may stand in for an answer that did not come; `nil` where nothing may.
    mutating func staleAnswer(status: Int? = nil) async throws -> Answer? {
        guard let standIn = try await standIn(status: status) else { return nil }
        standIn.whenUsed()
        return standIn.answer
    }

    /// What may stand in for an error, without counting it yet: another attempt may still succeed.
    /// - Parameter status: The server's error; `nil` where there was no answer.
    mutating func standIn(status: Int?) async throws -> StandIn? {
        if !hasLookedIntoDisk { await lookIntoDisk() }
        guard let answer = cache.decider(request, after: decision, found).failed(with: status, now: .now)
        else { return nil }
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
            cache.count(\.staleOnErrors, served: count)
            cache.tell(.staleOnError(url: url, status: status))
        }
    }
}

extension Answer {
    /// One of what is stored.
    convenience init(
        _ call: Call, _ answer: CachedAnswer, _ body: CachedBody, of response: StoredResponse,
        codings: [ContentCoding], _ caching: AnswerCaching
    ) {
        self.init(
            call: call, channel: .stored(body), head: answer.head, codings: codings,
            announcedByteCount: answer.byteCount(of: response), hasTrailers: response.hasTrailers,
            interim: [], attempts: 0, waited: call.start, provenance: caching)
    }
}

extension ResponseCache {
    /// What is stored was served.
    func noteUse(of response: StoredResponse, _ answer: CachedAnswer) {
        store.noteUse(of: response)
        store.promote(response)
        let byteCount = answer.byteCount(of: response)
        count {
            if answer.isStale { $0.staleHits &+= 1 } else { $0.hits &+= 1 }
            $0.bytesServed &+= byteCount
        }
    }
}

extension CachedAnswer {
    /// Where it comes from.
    var source: HTTPExchange.Source { isStale ? .staleCache : .cache }

    /// How many bytes of a stored body it has.
    func byteCount(of response: StoredResponse) -> UInt64 {
        switch content {
        case .none: 0
        case .whole: response.variant.bodyLength
        case .bytes(let range): range.upperBound - range.lowerBound
        }
    }
}

/// What the cache had to do with an answer.
final class AnswerCaching: AnswerProvenance {
    /// Where the answer came from.
    let source: HTTPExchange.Source
    /// What the cache did, and why.
    let status: CacheStatus
    /// The answer of the network whose body is shared; `nil` where the body is not, or was stored.
    let transfer: Answer?
    /// What takes the answer's place, which is an error, where nothing else follows it (RFC 5861 §4).
    let fallback: Answer?
    /// Called when that happens, to count it.
    private let whenUsed: (@Sendable () -> Void)?
    /// The cookies that the network set as it said that what is stored is good; those that are stored were set before.
    let setCookies: [[UInt8]]
    /// Whether it is a first delivery, behind which one of the network is to come.
    let isPreview: Bool

    init(
        _ source: HTTPExchange.Source, _ status: CacheStatus, transfer: Answer? = nil,
        standIn: StandIn? = nil, setCookies: [[UInt8]] = [], isPreview: Bool = false
    ) {
        self.source = source
        self.status = status
        self.transfer = transfer
        fallback = standIn?.answer
        whenUsed = standIn?.whenUsed
        self.setCookies = setCookies
        self.isPreview = isPreview
    }

    /// The member of `Cache-Status` that describes it.
    var cacheStatus: String { status.text }

    /// Whether nothing but the cache might answer, and it had nothing: whatever is stored is a hit, be it a 504 as well.
    var isUnsatisfied: Bool { source == .cache && !status.isHit }

    /// Takes what stands in for the answer, which counts from now on.
    func useFallback() -> Answer? {
        if fallback != nil { whenUsed?() }
        return fallback
    }
}

/// What may take the place of an error (RFC 5861 §4): it counts, and is told of, only where it does.
struct StandIn {
    /// The answer of what is stored.
    let answer: Answer
    /// Called when it takes the error's place.
    let whenUsed: @Sendable () -> Void
}

extension SessionCore {
    /// The requests that are made for several calls at once.
    var flights: FlightRegistry { state { FlightRegistry() } }
}
