package import MartletTransport

package import MartletWire
import Synchronization

// What is known of an exchange, while it runs and behind its end.
extension Exchange {
    /// The clocks in force.
    var clocks: ExchangeClocks {
        guard let total = state.withLock({ $0.totalDeadline }) else { return givenClocks }
        var clocks = givenClocks
        clocks.totalDeadline = total
        return clocks
    }

    /// Has the rest of it end by another total clock: that of a call that takes it over.
    package func adopt(totalDeadline: MonotonicTime) {
        state.withLock { $0.totalDeadline = totalDeadline }
    }

    /// Whether the exchange is over: it was finished, or its response is complete.
    package var isFinished: Bool {
        state.withLock { $0.isReleased }
    }

    /// Notes that a closure gets the body, which may take as long as it likes.
    package func closureBegins() {
        if !isFinished { connection.use = .closure }
    }

    /// When the parts of the exchange happened, and how many bytes moved.
    package var timeline: ExchangeTimeline {
        state.withLock { state in
            var timeline = state.timeline
            timeline.sentByteCount += state.writer?.byteCount ?? 0
            return timeline
        }
    }

    /// The interim responses that came before the final head (RFC 9110 §15.2).
    package var interimResponses: [ResponseHead] {
        state.withLock { $0.interim }
    }

    /// The fields that came behind a chunked body, once it is complete; never merged into the head (RFC 9110 §6.5).
    package var trailers: FieldBlock? {
        state.withLock { $0.trailers }
    }

    /// Whether a byte of the response has come.
    package var hasReceivedAnyByte: Bool {
        connection.hasReceivedAnyByte
    }
}
