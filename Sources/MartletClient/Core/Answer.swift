import MartletConnections
import MartletTransport
import MartletWire
import Synchronization

/// A response whose body has not been read.
///
/// A class, because it is handed from one step of a call to the next, and its many fields would be copied each time.
final class Answer: Sendable {
    let call: Call
    /// Where its body comes from.
    let channel: BodyChannel
    /// The final head.
    let head: ResponseHead
    /// The codings to undo.
    let codings: [ContentCoding]
    /// How long the body is said to be, before any coding is undone.
    let announcedByteCount: UInt64?
    private let hasTrailers: Bool
    /// The interim heads that came first.
    let interim: [ResponseHead]
    /// How many times the request was begun.
    let attempts: Int
    private let waited: MonotonicTime
    /// What the cache had to do with it; `nil` where there is none.
    let caching: AnswerCaching?
    /// Whether its body has gone elsewhere.
    private let isEmptied: Bool

    init(
        call: Call, channel: BodyChannel, head: ResponseHead,
        codings: [ContentCoding], announcedByteCount: UInt64?, hasTrailers: Bool, interim: [ResponseHead],
        attempts: Int, waited: MonotonicTime, caching: AnswerCaching? = nil, isEmptied: Bool = false
    ) {
        self.call = call
        self.channel = channel
        self.head = head
        self.codings = codings
        self.announcedByteCount = announcedByteCount
        self.hasTrailers = hasTrailers
        self.interim = interim
        self.attempts = attempts
        self.waited = waited
        self.caching = caching
        self.isEmptied = isEmptied
    }

    /// The same answer, of another call, with its body from elsewhere.
    /// - Parameters:
    ///   - channel: Where the body comes from; `nil` for where it comes from now.
    ///   - head: The head; `nil` for the one it has.
    ///   - codings: What is to be undone; `nil` for what it is now.
    func passed(
        to call: Call, channel: BodyChannel? = nil, head: ResponseHead? = nil,
        codings: [ContentCoding]? = nil, caching: AnswerCaching? = nil
    ) -> Answer {
        Answer(
            call: call, channel: channel ?? self.channel, head: head ?? self.head,
            codings: codings ?? self.codings, announcedByteCount: announcedByteCount,
            hasTrailers: hasTrailers, interim: interim, attempts: attempts, waited: waited,
            caching: caching ?? self.caching)
    }

    /// The same answer once its body has gone elsewhere.
    var emptied: Answer {
        Answer(
            call: call, channel: channel, head: head, codings: [],
            announcedByteCount: 0,
            hasTrailers: hasTrailers, interim: interim, attempts: attempts, waited: waited, caching: caching,
            isEmptied: true)
    }

    /// Ends it: nothing more is read of its body.
    func finish() {
        channel.finish()
    }

    /// Where it came from.
    var source: HTTPExchange.Source {
        if case .made(let body) = channel, body.base == nil { return .middleware }
        return caching?.source ?? .network
    }

    /// Whether an error is that of its stored body, which cannot be decoded and so is stored no longer: the network has
    /// another, it may be.
    func isStoredBadly(_ error: HTTPError) -> Bool {
        guard error.code == .contentDecodingFailed, source != .network else { return false }
        return (error.underlying as? ContentDecodingError)?.isOfBody == true
    }

    /// Fields behind a chunked body, once it has been read to its end.
    var trailers: FieldBlock? { hasTrailers ? channel.trailers : nil }

    /// What has happened so far.
    var metrics: HTTPMetrics { metricsSource.metrics }

    private var metricsSource: MetricsSource {
        if case .made(let body) = channel, let base = body.base { return base.metricsSource }
        guard case .exchange(let exchange) = channel else {
            let (ended, attempts) = (MonotonicTime.now(), attempts + call.hops.count)
            guard let transfer = caching?.transfer else {
                return .stored(start: call.start, ended: ended, attempts: attempts, hops: call.hops)
            }
            return .made(transfer.metrics.stored(call.start, ended, attempts, call.hops))
        }
        let connection = exchange.connection
        let timeline = exchange.timeline
        return .measured(
            MetricsSource.Measurement(
                start: call.start, waited: waited, ended: timeline.bodyReceived ?? MonotonicTime.now(),
                attempts: attempts + call.hops.count, hops: call.hops, proxy: call.proxy?.description,
                timeline: timeline, connection: connection.stream.information,
                dial: exchange.isReused ? nil : connection.timings))
    }

    /// The exchange with a body, or with what there is of it.
    /// - Parameter isCollected: Whether that is all of it.
    func exchange(with body: [UInt8], isCollected: Bool = false) -> HTTPExchange {
        HTTPExchange(
            ExchangeStorage(
                call, head: head, body: body,
                isBodyCollected: isCollected && !isEmptied && call.method != .head, trailers: trailers,
                interim: interim,
                metrics: metricsSource,
                source: source, representation: representation, cacheStatus: caching?.status,
                isPreview: caching?.isPreview ?? false))
    }

    /// Which stored body it has; `nil` where it has none.
    private var representation: UInt64? {
        if case .cache(let body) = channel { body.representation } else { nil }
    }
}

extension Answer {
    /// The body, where it is short and there as a whole, without waiting; else what is there of it.
    ///
    /// - Parameters:
    ///   - limit: The longest body that is taken, in bytes.
    /// - Returns: What there is, and whether that is all; `nil` where nothing was tried.
    /// - Throws: ``HTTPError``, or `CancellationError`.
    func receivedBody(upTo limit: UInt64) throws -> (bytes: [UInt8], isWhole: Bool)? {
        guard codings.isEmpty, let length = announcedByteCount, length <= limit else { return nil }
        switch channel {
        case .made: return nil
        case .cache(let body): return body.takeWhole().map { ($0, true) }
        case .exchange(let exchange):
            guard !exchange.isHeldBack(.down) else { return nil }
            do throws(ExchangeError) {
                let bytes = try exchange.readBodyAtOnce(upTo: Int(length))
                return (bytes, exchange.isFinished)
            } catch {
                exchange.finish()
                throw call.failure(error, attempts: attempts)
            }
        }
    }
}

/// A validator's word against an answer that came whole, on its way out of a call.
///
/// It is no ``HTTPError``, so that nobody on the way takes the refusal for a failure that another try might mend: what can be
/// tried again has been, when validators are asked.
struct AnswerRefusal: Error {
    /// What the validator threw, which is what the call throws.
    let reason: any Error

    /// What a call throws for an error that comes out of it.
    static func reason(of error: any Error) -> any Error {
        (error as? AnswerRefusal)?.reason ?? error
    }
}

/// A result that any number of tasks wait for, each of which may be cancelled by itself.
///
/// Awaiting `Task.value` would not do: there a cancelled waiter neither returns early nor leaves the others in peace.
final class Outcome<Value: Sendable>: Sendable {
    private struct State {
        var result: Result<Value, any Error>?
        var waiters: [UInt64: Waiter<Result<Value, any Error>>] = [:]
        var lastWaiter: UInt64 = 0
    }

    /// Guards the above: the one that settles it, and those that wait.
    private let state = Mutex(State())

    /// The result, once there is one.
    var settled: Result<Value, any Error>? {
        state.withLock { $0.result }
    }

    /// Settles it; the first result counts.
    func settle(_ result: Result<Value, any Error>) {
        let waiters = state.withLock { state -> [UInt64: Waiter<Result<Value, any Error>>] in
            guard state.result == nil else { return [:] }
            state.result = result
            let waiters = state.waiters
            state.waiters = [:]
            return waiters
        }
        for waiter in waiters.values { waiter.resume(returning: result) }
    }

    /// Settles it, or changes the value that it was settled with: a later attempt has another.
    func replace(with value: Value) {
        let waiters = state.withLock { state -> [UInt64: Waiter<Result<Value, any Error>>] in
            state.result = .success(value)
            defer { state.waiters = [:] }
            return state.waiters
        }
        for waiter in waiters.values { waiter.resume(returning: .success(value)) }
    }

    /// The value; throws `CancellationError` when the waiting task is cancelled first.
    var value: Value {
        get async throws {
            let number = state.withLock { state in
                state.lastWaiter += 1
                return state.lastWaiter
            }
            let result = await withTaskCancellationHandler {
                await suspend { (waiter: Waiter<Result<Value, any Error>>) in
                    let early = state.withLock { state -> Result<Value, any Error>? in
                        if let result = state.result { return result }
                        if Task.isCancelled { return .failure(CancellationError()) }
                        state.waiters[number] = waiter
                        return nil
                    }
                    if let early { waiter.resume(returning: early) }
                }
            } onCancel: {
                let waiter = state.withLock { $0.waiters.removeValue(forKey: number) }
                waiter?.resume(returning: .failure(CancellationError()))
            }
            // Read again under the lock, as OneShot does and for the same reason.
            return try (state.withLock { $0.result } ?? result).get()
        }
    }
}
