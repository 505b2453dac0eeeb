/// A response whose body has not been read.
///
/// A class, because each step of a call passes it to the next, and its many fields would be copied each time.
package final class StreamedResponse: Sendable {
    package let call: Call
    package let channel: ResponseBodySource
    /// The final head of the response.
    package let head: ResponseHead
    let codings: [ContentCoding]
    /// The length of the body in the head, before any coding is decoded.
    package let expectedContentLength: UInt64?
    private let hasTrailers: Bool
    let interim: [ResponseHead]
    /// The number of attempts to send the request.
    package let attempts: Int
    private let waited: MonotonicTime
    /// The part of a stage, such as the cache, in the response; `nil` for a response from the network alone.
    package let provenance: (any ResponseProvenance)?
    /// Whether the body was written to the file that the delegate chose.
    private let isEmptied: Bool

    package init(
        call: Call, channel: ResponseBodySource, head: ResponseHead, codings: [ContentCoding],
        expectedContentLength: UInt64?, hasTrailers: Bool, interim: [ResponseHead], attempts: Int,
        waited: MonotonicTime, provenance: (any ResponseProvenance)? = nil, isEmptied: Bool = false
    ) {
        (self.call, self.channel, self.head) = (call, channel, head)
        (self.codings, self.expectedContentLength, self.hasTrailers) = (codings, expectedContentLength, hasTrailers)
        (self.interim, self.attempts, self.waited) = (interim, attempts, waited)
        (self.provenance, self.isEmptied) = (provenance, isEmptied)
    }

    /// Returns the same response for another call. Arguments that are `nil` change nothing.
    /// - Parameters:
    ///   - channel: The source of the body.
    ///   - codings: The codings to decode.
    package func passed(
        to call: Call, channel: ResponseBodySource? = nil, head: ResponseHead? = nil, codings: [ContentCoding]? = nil,
        provenance: (any ResponseProvenance)? = nil
    ) -> StreamedResponse {
        StreamedResponse(
            call: call, channel: channel ?? self.channel, head: head ?? self.head, codings: codings ?? self.codings,
            expectedContentLength: expectedContentLength, hasTrailers: hasTrailers, interim: interim,
            attempts: attempts, waited: waited, provenance: provenance ?? self.provenance)
    }

    /// The same response after its body was written to the file that the delegate chose.
    var emptied: StreamedResponse {
        StreamedResponse(
            call: call, channel: channel, head: head, codings: [], expectedContentLength: 0, hasTrailers: hasTrailers,
            interim: interim, attempts: attempts, waited: waited, provenance: provenance, isEmptied: true)
    }

    // Recursive functions are not inlined, because the compiler would copy them into each caller several times.

    /// Ends the response: no more of its body is read.
    @inline(never) package func finish() { channel.finish() }

    package var source: HTTPExchange.Source {
        if case .made(let body) = channel, body.base == nil { return .middleware }
        return provenance?.source ?? .network
    }

    /// Whether a server or a middleware made the response for this call. Otherwise a feature did, such as the cache.
    var isMadeForCall: Bool { source == .network || source == .middleware }

    /// Whether an error means that a stored body could not be decoded. That body was removed.
    func isStoredBadly(_ error: HTTPError) -> Bool {
        guard error.code == .contentDecodingFailed, source != .network else { return false }
        return (error.underlying as? ContentDecodingError)?.appliesToBody == true
    }

    /// The trailers of a chunked body; available after the body was read to its end.
    package var trailers: FieldBlock? { hasTrailers ? channel.trailers : nil }
    var metrics: HTTPMetrics { deferredMetrics.metrics }

    var deferredMetrics: DeferredMetrics {
        if case .made(let body) = channel, let base = body.base { return base.deferredMetrics }
        if case .exchange(let exchange) = channel {
            return .measured(DeferredMetrics.Measurement(exchange, of: call, waited: waited, attempts: attempts))
        }
        let transfer = provenance?.transfer
        let (ended, attempts) = (MonotonicTime.now(), (transfer?.attempts ?? attempts) + call.hops.count)
        guard let transfer else {
            return .stored(start: call.start, ended: ended, attempts: attempts, hops: call.hops)
        }
        return .made(transfer.metrics.ofCall(call.start, ended, attempts, call.hops))
    }

    /// Returns the exchange with a body, or with a part of it.
    /// - Parameter isCollected: Whether `body` is the whole body.
    func exchange(with body: [UInt8], isCollected: Bool = false) -> HTTPExchange {
        HTTPExchange(ExchangeStorage(self, body, isCollected: isCollected && !isEmptied))
    }
}

/// The source of the body of a response.
package enum ResponseBodySource: Sendable {
    case exchange(Exchange)
    /// A stage that stores bodies, or shares a transfer between calls.
    case stored(any StoredBody)
    case made(MiddlewareBody)

    /// Returns the same source for a call that takes over the response.
    /// - Parameter userCode: The runner of the code that makes a middleware's body.
    package func adopted(by userCode: UserCode) -> ResponseBodySource {
        if case .made(let body) = self { .made(body.adopted(by: userCode)) } else { self }
    }

    /// Ends the response: no more of its body is read.
    func finish() {
        switch self {
        case .exchange(let exchange): exchange.finish()
        case .stored(let body): body.leave()
        case .made(let body): body.base?.finish()
        }
    }

    /// Ends the response, and waits a moment for the rest of a small body, so that its connection can be reused.
    /// - Parameter control: The control of the call that waits.
    package func finish(waitingUntil deadline: MonotonicTime, for control: TransferControl) async {
        switch self {
        case .exchange(let exchange): await exchange.finish(waitingUntil: deadline)
        case .stored(let body): await body.leave(waitingUntil: deadline, for: control)
        case .made(let body): await body.base?.channel.finish(waitingUntil: deadline, for: control)
        }
    }

    /// Ends the response without reading even a small rest of it: its connection is not reused.
    @inline(never) func reject() {
        switch self {
        case .exchange(let exchange): exchange.reject()
        case .stored(let body): body.leave()
        case .made(let body): body.base?.channel.reject()
        }
    }

    /// The trailers of a chunked body; available after the body was read to its end.
    @inline(never) var trailers: FieldBlock? {
        switch self {
        case .exchange(let exchange): exchange.trailers
        case .stored(let body): body.trailers
        case .made(let body): body.trailers
        }
    }

    /// The exchange that may hold a connection for the body; `nil` if nothing is received.
    @inline(never) package var heldExchange: Exchange? {
        switch self {
        case .exchange(let exchange): exchange
        case .stored(let body): body.exchange
        case .made(let body): body.base?.channel.heldExchange
        }
    }

    /// Whether an earlier exchange used the connection.
    @inline(never) var isReused: Bool {
        switch self {
        case .exchange(let exchange): exchange.isReused
        case .stored: false
        case .made(let body): body.base?.channel.isReused ?? false
        }
    }
}

/// The part that a stage, such as a cache, had in a response.
package protocol ResponseProvenance: AnyObject, Sendable {
    /// The source of the response, such as `.cache`.
    var source: HTTPExchange.Source { get }
    /// The network's response to this call's own request, if other calls share its body or if it validated a stored
    /// response; `nil` for a call that uses the transfer or validation of another call.
    var transfer: StreamedResponse? { get }
    /// The member of `Cache-Status` (RFC 9211) for the response, as far as it is known.
    var cacheStatus: String { get }
    /// The cookies that the network set when it confirmed a stored response.
    var setCookies: [[UInt8]] { get }
    /// Whether another response, from the network, follows this one.
    var isPreview: Bool { get }
    /// Whether the response is a 504 because only a stored response was allowed and none was usable.
    var isUnsatisfied: Bool { get }
    /// The provenance without references to the session, for an exchange that a program may store.
    var detached: any ResponseProvenance { get }
    /// Returns a stored response to use instead of this one, which is an error; `nil` without one.
    func useFallback() -> StreamedResponse?
}

/// The body of a response that a stage has stored, or shares between calls. Only one task reads it.
package protocol StoredBody: AnyObject, Sendable {
    /// The number of the stored body; `nil` if the body is not stored.
    var representation: UInt64? { get }
    /// The exchange that receives the body; `nil` if none does.
    var exchange: Exchange? { get }
    /// The trailers; available after the body was read to its end.
    var trailers: FieldBlock? { get }
    /// The received bytes that are not delivered yet, because the reader needs the whole body.
    var collected: [UInt8] { get }
    /// Returns the whole body if it is in memory.
    func takeWhole() -> [UInt8]?
    /// Records that the reader needs the whole body, so that it need not be delivered in pieces.
    func collect()
    /// Returns the next bytes; `nil` at the end.
    ///
    /// - Parameter deadline: The end of the wait for more bytes, if it is sooner than the timeouts.
    /// - Throws: ``HTTPError``; `CancellationError`.
    func next(for call: Call, control: TransferControl, deadline: MonotonicTime?) async throws -> [UInt8]?
    /// Stops reading the body.
    func leave()
    /// Stops reading, and waits a moment for the rest of a small body.
    func leave(waitingUntil deadline: MonotonicTime, for control: TransferControl) async
    /// Removes the stored body, which cannot be decoded.
    func withdraw() async
}
