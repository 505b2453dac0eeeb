import MartletFeatureSettings
import MartletCookies
import MartletCore
import MartletCache
import Synchronization

/// The code that sends the request of a shared transfer and receives its body, in a separate task.
struct FlightDriver: Sendable {
    let flight: CacheFlight
    let cache: ResponseCache
    let core: SessionCore
    let dialer: Dialer
    let call: Call
    let request: CacheRequest
    let decision: CacheDecision
    /// The stored responses, and the epoch of their lookup.
    let found: [StoredResponse]
    let epoch: InvalidationLog.Epoch

    /// Runs the transfer to its end.
    /// - Parameter ended: Called when requests can no longer join.
    func run(_ ended: @escaping @Sendable () -> Void) async {
        do { if try await request(ended) { return } } catch {
            noteFailure(error)
            flight.decide(.failed(error))
        }
        ended()
    }

    /// Reports a failed validation of a response that was served stale, which no caller sees; not if the session ended.
    private func noteFailure(_ error: (any Error)? = nil) {
        guard flight.isUnattended, !(error is CancellationError) else { return }
        cache.emit(.revalidationFailed(url: request.key.url))
    }

    /// - Returns: Whether the code that stores the body calls `ended`; if not, the caller has to.
    private func request(_ ended: @escaping @Sendable () -> Void) async throws -> Bool {
        var fields = decision.plan?.fields ?? FieldBlock()
        let decider = cache.decider(request, after: decision, found)
        let call = call.shared
        var isRepeated = false
        while true {
            let seen = cache.store.changeEpoch
            let sent = cache.store.requestTime(for: request.key.url, now: .now)
            let runner = CallRunner(
                core: core, dialer: dialer, call: call.asking(fields), control: flight.control, gate: flight.gate)
            let network = try await runner.runBelowCache()
            let cookies = flight.isUnattended ? network.setCookies : []
            if !cookies.isEmpty { await call.cookieJar?.store(setCookieBytes: cookies, from: call.url) }
            var decided = decider.received(network.head, requestTime: sent, responseTime: WallTime.now)
            if !cache.isTransient, network.isFromUnverifiedServer(dialer) { decided = decided.changingNothing }
            let freshened = await cache.carryOut(decided, for: request, found, epoch, since: seen, on: core.loop)
            switch decided.delivery {
            case .repeatUnconditionally where !isRepeated:
                await end(network)
                fields = FieldBlock()
                isRepeated = true
                continue
            case .repeatUnconditionally:
                // A server that always responds with 304, even without conditions, would cause endless repetition.
                noteFailure()
                hand(over: CacheFlight.Offer(network: network, status: decided.status))
            case .stored(var answer):
                let stored = freshened[answer.variant]
                answer.status.isStored = stored != nil
                flight.decide(.stored(stored ?? found[answer.variant], answer, network))
                await end(network)
            case .staleOnError:
                noteFailure()
                hand(over: CacheFlight.Offer(network: network, status: decided.status, hasStaleFallback: true))
            case .network:
                if network.head.status >= 500 { noteFailure() }
                return try await deliver(network, decided, ended)
            }
            return false
        }
    }

    private func deliver(
        _ network: StreamedResponse, _ decided: ResponseDecision, _ ended: @escaping @Sendable () -> Void
    ) async throws -> Bool {
        let superseded = decided.superseded.map { found[$0] }
        let isSuperseding = decided.isSuperseding && !cache.isTransient
        // A response without a body is stored with an empty one.
        var kept: (head: StoredHead, writer: ResponseWriter?)?
        if case .store(let head) = decided.storage, try await mayStore(network) {
            let writer =
                cache.isTransient
                ? nil : cache.store.begin(head, expectedByteCount: network.expectedContentLength, epoch: epoch)
            if writer != nil || cache.isTransient { kept = (head, writer) }
        }
        var status = decided.status
        guard let (head, writer) = kept else {
            if isSuperseding { cache.store.supersede(request.key) }
            await cache.remove(superseded, on: core.loop)
            hand(over: CacheFlight.Offer(network: network, status: status))
            return false
        }
        let variant = StoredVariant(head: head, bodyLength: network.expectedContentLength ?? 0)
        if let writer {
            flight.begin(writer, byteCount: network.expectedContentLength)
        } else {
            status.timeToLive = nil
        }
        let transfer = CacheFlight.Transfer(variant: variant, network: network, status: status)
        flight.decide(.transfer(transfer, .coming))
        do {
            try await receive(network)
            let (cache, flight, key, trailers) = (cache, flight, request.key, trailers(of: network))
            let storing = cache.store.hasDisk ? StoreWork<Void>(in: cache.store, on: core.loop) : nil
            // The thread that wrote the last bytes stores the body and resumes the readers: one switch less for each.
            flight.noteWhole {
                let stored = writer?.commit(trailers: trailers, now: .now)
                if let stored {
                    cache.count {
                        $0.stores &+= 1
                        $0.bytesStored &+= stored.variant.bodyLength
                    }
                } else {
                    if isSuperseding { cache.store.supersede(key) }
                    cache.removeNow(superseded)
                }
                // Called before the waits end, so that no later request for another response joins this transfer.
                ended()
                flight.end(.complete(stored))
                writer?.releaseReplacedBody()
                storing?.finish(())
            }
            if let storing, await storing.value() == nil { flight.release() }
            return true
        } catch {
            noteFailure(error)
            // A body without readers is abandoned if it cannot be stored: the stored response is out of date.
            if flight.isUnattended, flight.state.withLock(\.isAbandoned) {
                await cache.remove(superseded, on: core.loop)
            }
            if let writer { _ = await StoreWork.run(in: cache.store, on: core.loop) { writer.abandon() } }
            network.finish()
            flight.end(.failed(error))
            return false
        }
    }

    /// Returns the trailers to store. If a middleware made the body, digests are omitted: they describe the bytes that
    /// were received.
    private func trailers(of network: StreamedResponse) -> FieldBlock? {
        guard case .made = network.channel else { return network.trailers }
        return network.trailers?.filtered { !["content-digest", "repr-digest"].contains($0) }
    }

    /// Whether the delegate allows the response to be stored.
    private func mayStore(_ network: StreamedResponse) async throws -> Bool {
        guard let delegate = call.settings.configuration.delegate else { return true }
        let (response, request) = (HeadConversion.response(network.head), network.call.publicRequest)
        do {
            return try await UserCode(network.call, control: flight.control, loop: core.loop).run(
                "the delegate's mayStore(_:to:)", .processingResponse, holding: network.channel.heldExchange
            ) { await delegate.mayStore(response, to: request) }
        } catch {
            network.finish()
            throw error
        }
    }

    /// Offers the exchange to the first member that takes it.
    private func hand(over offer: CacheFlight.Offer) {
        if !flight.decide(.offer(offer, isTaken: false)), flight.claim() != nil { offer.network.finish() }
    }

    private func end(_ network: StreamedResponse) async {
        await network.channel.finish(
            waitingUntil: MonotonicTime.now().advanced(by: .milliseconds(50)), for: flight.control)
    }

    private func receive(_ network: StreamedResponse) async throws {
        // The bytes as received, without events: those are emitted when a call reads them.
        let wire = network.passed(to: network.call.unobserved, codings: [])
        let reader = BodyReader(wire, control: flight.control, byteLimit: nil)
        while await flight.waitForDemand() {
            guard let bytes = try await reader.next() else { return }
            flight.append(bytes)
        }
        throw CancellationError()
    }
}
