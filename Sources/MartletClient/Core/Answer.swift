import MartletConnections
import MartletTransport
import MartletWire

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
    ///   - codings: What is to be undone; `nil` for what it is now.
    func passed(
        to call: Call, channel: BodyChannel? = nil, codings: [ContentCoding]? = nil,
        caching: AnswerCaching? = nil
    ) -> Answer {
        Answer(
            call: call, channel: channel ?? self.channel, head: head,
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
    var source: HTTPExchange.Source { caching?.source ?? .network }

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
