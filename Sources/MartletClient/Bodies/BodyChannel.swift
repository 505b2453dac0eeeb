import MartletConnections
import MartletTransport
import MartletWire

/// Where the body of an answer comes from.
enum BodyChannel: Sendable {
    /// The connection, as its exchange reads it.
    case exchange(Exchange)
    /// The cache, or a transfer that it shares between calls.
    case cache(CachedBody)

    /// Ends the answer: nothing more is read of it.
    func finish() {
        switch self {
        case .exchange(let exchange): exchange.finish()
        case .cache(let body): body.leave()
        }
    }

    /// Ends the answer, and waits a moment for the rest of a small body, so that its connection can carry another request.
    /// - Parameter control: That of whoever waits.
    func finish(waitingUntil deadline: MonotonicTime, for control: TransferControl) async {
        switch self {
        case .exchange(let exchange): await exchange.finish(waitingUntil: deadline)
        case .cache(let body): await body.leave(waitingUntil: deadline, for: control)
        }
    }

    /// Ends the answer for what it is: nothing more is taken of it, however little is left.
    func refuse() {
        switch self {
        case .exchange(let exchange): exchange.refuse()
        case .cache(let body): body.leave()
        }
    }

    /// Fields behind a chunked body, once it has been read to its end.
    var trailers: FieldBlock? {
        switch self {
        case .exchange(let exchange): exchange.trailers
        case .cache(let body): body.trailers
        }
    }

    /// The exchange that may hold a connection for the body; `nil` where nothing is received.
    var heldExchange: Exchange? {
        switch self {
        case .exchange(let exchange): exchange
        case .cache(let body): body.exchange
        }
    }

    /// Whether the connection had carried another exchange before.
    var isReused: Bool {
        if case .exchange(let exchange) = self { exchange.isReused } else { false }
    }
}
