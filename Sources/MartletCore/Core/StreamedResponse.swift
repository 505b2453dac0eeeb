/// A response whose body has not been read.
///
/// A class, because it is passed from one step of a call to the next, and its many fields would be copied each time.
package final class StreamedResponse: Sendable {
    package let call: Call
    /// The source of the body.
    package let channel: ResponseBodySource
    /// The final head.
    package let head: ResponseHead
    let codings: [ContentCoding]
    /// The announced length of the body, before any coding is decoded.
    package let expectedContentLength: UInt64?
    private let hasTrailers: Bool
    let interim: [ResponseHead]
    /// The number of times the request was begun.
    let attempts: Int
    private let waited: MonotonicTime
    /// The stage that made the response, or had a part in it; `nil` for one of the network.
    package let provenance: (any AnswerProvenance)?
    /// Whether the body was written elsewhere.
    private let isEmptied: Bool

    package init(
        call: Call, channel: ResponseBodySource, head: ResponseHead, codings: [ContentCoding],
        expectedContentLength: UInt64?, hasTrailers: Bool, interim: [ResponseHead], attempts: Int,
        waited: MonotonicTime, provenance: (any AnswerProvenance)? = nil, isEmptied: Bool = false
    ) {
        self.call = call
        self.channel = channel
        self.head = head
        self.codings = codings
        self.expectedContentLength = expectedContentLength
        self.hasTrailers = hasTrailers
        self.interim = interim
        self.attempts = attempts
        self.waited = waited
        self.provenance = provenance
        self.isEmptied = isEmptied
    }

    /// The same response for another call. Arguments that are `nil` leave a part as it is.
    /// - Parameters:
    ///   - channel: The source of the body.
    ///   - codings: The codings to decode.
    package func passed(
        to call: Call, channel: ResponseBodySource? = nil, head: ResponseHead? = nil, codings: [ContentCoding]? = nil,
        provenance: (any AnswerProvenance)? = nil
    ) -> StreamedResponse {
        StreamedResponse(
            call: call, channel: channel ?? self.channel, head: head ?? self.head, codings: codings ?? self.codings,
            expectedContentLength: expectedContentLength, hasTrailers: hasTrailers, interim: interim,
            attempts: attempts, waited: waited, provenance: provenance ?? self.provenance)
    }

    /// The same response after its body was written elsewhere.
    var emptied: StreamedResponse {
        StreamedResponse(
            call: call, channel: channel, head: head, codings: [], expectedContentLength: 0, hasTrailers: hasTrailers,
            interim: interim, attempts: attempts, waited: waited, provenance: provenance, isEmptied: true)
    }

    /// Ends it: nothing more is read of its body.
    package func finish() { channel.finish() }

    package var source: HTTPExchange.Source {
        if case .made(let body) = channel, body.base == nil { return .middleware }
        return provenance?.source ?? .network
    }

    /// Whether an error is that of its stored body, which cannot be decoded and was removed: the network may have a better one.
    func isStoredBadly(_ error: HTTPError) -> Bool {
        guard error.code == .contentDecodingFailed, source != .network else { return false }
        return (error.underlying as? ContentDecodingError)?.isOfBody == true
    }

    /// The fields after a chunked body, once it has been read to its end.
    package var trailers: FieldBlock? { hasTrailers ? channel.trailers : nil }
    var metrics: HTTPMetrics { deferredMetrics.metrics }

    var deferredMetrics: DeferredMetrics {
        if case .made(let body) = channel, let base = body.base { return base.deferredMetrics }
        if case .exchange(let exchange) = channel {
            return .measured(DeferredMetrics.Measurement(exchange, of: call, waited: waited, attempts: attempts))
        }
        let (ended, attempts) = (MonotonicTime.now(), attempts + call.hops.count)
        guard let transfer = provenance?.transfer else {
            return .stored(start: call.start, ended: ended, attempts: attempts, hops: call.hops)
        }
        return .made(transfer.metrics.stored(call.start, ended, attempts, call.hops))
    }

    /// The exchange with a body, or with a part of it.
    /// - Parameter isCollected: Whether that is all of it.
    func exchange(with body: [UInt8], isCollected: Bool = false) -> HTTPExchange {
        HTTPExchange(ExchangeStorage(self, body, isCollected: isCollected && !isEmptied))
    }
}

/// The source of the body of a response.
package enum ResponseBodySource: Sendable {
    case exchange(Exchange)
    /// A stage that stores bodies, or shares a transfer between calls.
    case stored(any StoredBody)
    case made(MadeBody)

    /// Ends the response: nothing more is read of it.
    func finish() {
        switch self {
        case .exchange(let exchange): exchange.finish()
        case .stored(let body): body.leave()
        case .made(let body): body.base?.finish()
        }
    }

    /// Ends the response, and waits a moment for the rest of a small body, so that its connection can carry another request.
    /// - Parameter control: That of the call that waits.
    package func finish(waitingUntil deadline: MonotonicTime, for control: TransferControl) async {
        switch self {
        case .exchange(let exchange): await exchange.finish(waitingUntil: deadline)
        case .stored(let body): await body.leave(waitingUntil: deadline, for: control)
        case .made(let body): await body.base?.channel.finish(waitingUntil: deadline, for: control)
        }
    }

    /// Ends the response without reading even a small rest of it: its connection is not used again.
    func refuse() {
        switch self {
        case .exchange(let exchange): exchange.refuse()
        case .stored(let body): body.leave()
        case .made(let body): body.base?.channel.refuse()
        }
    }

    /// The fields after a chunked body, once it has been read to its end.
    var trailers: FieldBlock? {
        switch self {
        case .exchange(let exchange): exchange.trailers
        case .stored(let body): body.trailers
        case .made(let body): body.base?.trailers
        }
    }

    /// The exchange that may hold a connection for the body; `nil` if nothing is received.
    package var heldExchange: Exchange? {
        switch self {
        case .exchange(let exchange): exchange
        case .stored(let body): body.exchange
        case .made(let body): body.base?.channel.heldExchange
        }
    }

    /// Whether the connection had carried another exchange before.
    var isReused: Bool {
        switch self {
        case .exchange(let exchange): exchange.isReused
        case .stored: false
        case .made(let body): body.base?.channel.isReused ?? false
        }
    }
}

/// The part that a stage, such as a cache, had in a response.
package protocol AnswerProvenance: AnyObject, Sendable {
    /// The source of the response.
    var source: HTTPExchange.Source { get }
    /// The network's response whose body is shared between calls; `nil` if it is not.
    var transfer: StreamedResponse? { get }
    /// The member of `Cache-Status` (RFC 9211) that describes it.
    var cacheStatus: String { get }
    /// The cookies that the network set when it confirmed a stored response.
    var setCookies: [[UInt8]] { get }
    /// Whether another response, from the network, follows this one.
    var isPreview: Bool { get }
    /// Whether the response is a 504 because only a stored response was allowed, and there is none.
    var isUnsatisfied: Bool { get }
    /// Takes the stored response that replaces this one, which is an error, if there is one.
    func useFallback() -> StreamedResponse?
}

/// The body of a response that a stage has stored, or shares between calls. One task reads it.
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
    /// - Parameter patience: The end of the wait for more, if that is sooner than the timeouts have it.
    /// - Throws: ``HTTPError``; `CancellationError`.
    func next(for call: Call, control: TransferControl, patience: MonotonicTime?) async throws -> [UInt8]?
    /// Stops reading.
    func leave()
    /// Stops reading, and waits a moment for the rest of a small body.
    func leave(waitingUntil deadline: MonotonicTime, for control: TransferControl) async
    /// Removes the stored body, which cannot be decoded.
    func withdraw() async
}
