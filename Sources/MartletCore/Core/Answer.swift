import MartletCredentials
import MartletContent
import MartletConnections
import MartletTransport
import MartletWire
import Synchronization

/// A response whose body has not been read.
///
/// A class, because it is handed from one step of a call to the next, and its many fields would be copied each time.
package final class Answer: Sendable {
    package let call: Call
    /// Where its body comes from.
    package let channel: BodyChannel
    /// The final head.
    package let head: ResponseHead
    /// The codings to undo.
    let codings: [ContentCoding]
    /// How long the body is said to be, before any coding is undone.
    package let announcedByteCount: UInt64?
    private let hasTrailers: Bool
    /// The interim heads that came first.
    let interim: [ResponseHead]
    /// How many times the request was begun.
    let attempts: Int
    private let waited: MonotonicTime
    /// The stage that made the answer, or had a part in it; `nil` for one of the network.
    package let provenance: (any AnswerProvenance)?
    /// Whether its body has gone elsewhere.
    private let isEmptied: Bool

    package init(
        call: Call, channel: BodyChannel, head: ResponseHead, codings: [ContentCoding],
        announcedByteCount: UInt64?, hasTrailers: Bool, interim: [ResponseHead], attempts: Int,
        waited: MonotonicTime, provenance: (any AnswerProvenance)? = nil, isEmptied: Bool = false
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
        self.provenance = provenance
        self.isEmptied = isEmptied
    }

    /// The same answer, of another call, with its body from elsewhere.
    /// - Parameters:
    ///   - channel: Where the body comes from; `nil` for where it comes from now.
    ///   - head: The head; `nil` for the one it has.
    ///   - codings: What is to be undone; `nil` for what it is now.
    package func passed(
        to call: Call, channel: BodyChannel? = nil, head: ResponseHead? = nil,
        codings: [ContentCoding]? = nil, provenance: (any AnswerProvenance)? = nil
    ) -> Answer {
        Answer(
            call: call, channel: channel ?? self.channel, head: head ?? self.head,
            codings: codings ?? self.codings, announcedByteCount: announcedByteCount,
            hasTrailers: hasTrailers, interim: interim, attempts: attempts, waited: waited,
            provenance: provenance ?? self.provenance)
    }

    /// The same answer once its body has gone elsewhere.
    var emptied: Answer {
        Answer(
            call: call, channel: channel, head: head, codings: [], announcedByteCount: 0,
            hasTrailers: hasTrailers, interim: interim, attempts: attempts, waited: waited,
            provenance: provenance, isEmptied: true)
    }

    /// Ends it: nothing more is read of its body.
    package func finish() { channel.finish() }

    /// Where it came from.
    package var source: HTTPExchange.Source {
        if case .made(let body) = channel, body.base == nil { return .middleware }
        return provenance?.source ?? .network
    }

    /// Whether an error is that of its stored body, which cannot be decoded and so is stored no longer: the network has
    /// another, it may be.
    func isStoredBadly(_ error: HTTPError) -> Bool {
        guard error.code == .contentDecodingFailed, source != .network else { return false }
        return (error.underlying as? ContentDecodingError)?.isOfBody == true
    }

    /// Fields behind a chunked body, once it has been read to its end.
    package var trailers: FieldBlock? { hasTrailers ? channel.trailers : nil }

    /// What has happened so far.
    var metrics: HTTPMetrics { metricsSource.metrics }

    private var metricsSource: MetricsSource {
        if case .made(let body) = channel, let base = body.base { return base.metricsSource }
        guard case .exchange(let exchange) = channel else {
            let (ended, attempts) = (MonotonicTime.now(), attempts + call.hops.count)
            guard let transfer = provenance?.transfer else {
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
                interim: interim, metrics: metricsSource, source: source, representation: representation,
                provenance: provenance))
    }

    /// Which stored body it has; `nil` where it has none.
    private var representation: UInt64? {
        if case .stored(let body) = channel { body.representation } else { nil }
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
        case .stored(let body): return body.takeWhole().map { ($0, true) }
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

/// The part that a stage had in an answer, such as a cache's.
package protocol AnswerProvenance: AnyObject, Sendable {
    /// The source of the answer.
    var source: HTTPExchange.Source { get }
    /// The network's answer whose body is shared between calls; `nil` if it is not.
    var transfer: Answer? { get }
    /// The member of `Cache-Status` (RFC 9211) that describes it.
    var cacheStatus: String { get }
    /// The cookies that the network set when it confirmed a stored answer.
    var setCookies: [[UInt8]] { get }
    /// Whether another answer, from the network, follows this one.
    var isPreview: Bool { get }
    /// Whether the answer is a 504 because only a stored response was allowed, and there is none.
    var isUnsatisfied: Bool { get }
    /// Takes the stored answer that replaces this one, which is an error, if there is one.
    func useFallback() -> Answer?
}

/// The body of an answer that a stage has stored, or shares between calls. One task reads it.
package protocol StoredBody: AnyObject, Sendable {
    /// The number of the stored body; `nil` if there is none.
    var representation: UInt64? { get }
    /// The exchange that receives the body, if one does.
    var exchange: Exchange? { get }
    /// The trailers, once the body has been read to its end.
    var trailers: FieldBlock? { get }
    /// The bytes received for a reader that takes the whole body, and not handed out yet.
    var collected: [UInt8] { get }
    /// Takes the whole body if it is in memory.
    func takeWhole() -> [UInt8]?
    /// Notes that the reader takes the whole body, so that it need not come in pieces.
    func collect()
    /// The next bytes; `nil` at the end.
    ///
    /// - Parameter patience: The end of the wait for more, if that is sooner than the clocks have it.
    /// - Throws: ``HTTPError``; `CancellationError`.
    func next(for call: Call, control: TransferControl, patience: MonotonicTime?) async throws -> [UInt8]?
    /// Stops reading.
    func leave()
    /// Stops reading, and waits a moment for the rest of a small body.
    func leave(waitingUntil deadline: MonotonicTime, for control: TransferControl) async
    /// Removes the stored body, which cannot be decoded.
    func withdraw() async
}

/// A validator's word against an answer that came whole, on its way out of a call.
///
/// It is no ``HTTPError``, so that nobody on the way takes the refusal for a failure that another try might mend: what can be
/// tried again has been, when validators are asked.
struct AnswerRefusal: Error {
    /// What the validator threw, which is what the call throws.
    let reason: any Error

    /// What a call throws for an error that comes out of it.
    static func reason(of error: any Error) -> any Error { (error as? AnswerRefusal)?.reason ?? error }
}

/// A result that any number of tasks wait for, each of which may be cancelled by itself.
///
/// Awaiting `Task.value` would not do: there a cancelled waiter neither returns early nor leaves the others in peace.
package final class Outcome<Value: Sendable>: Sendable {
    private struct State {
        var result: Result<Value, any Error>?
        var waiters: [UInt64: Waiter<Result<Value, any Error>>] = [:]
        var lastWaiter: UInt64 = 0
    }

    /// Guards the above: the one that settles it, and those that wait.
    private let state = Mutex(State())

    package init() {}

    /// The result, once there is one.
    var settled: Result<Value, any Error>? { state.withLock { $0.result } }

    /// Settles it; the first result counts.
    package func settle(_ result: Result<Value, any Error>) {
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
    package var value: Value {
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
