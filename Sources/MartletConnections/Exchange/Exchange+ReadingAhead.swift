package import MartletTransport
import Synchronization

/// The part of a body that was read before anybody asked for it.
final class BodyAhead: Sendable {
    let bytes: [UInt8]
    /// The error that ended the reading.
    let failure: ExchangeError.Cause?

    init(_ bytes: [UInt8], failure: ExchangeError.Cause?) {
        self.bytes = bytes
        self.failure = failure
    }
}

extension Exchange {
    /// The longest body that is read ahead, in bytes.
    package static let readAheadLimit = 64 * 1024

    /// Reads what is left of a short body into memory, so that the connection is free while the program decides about the
    /// response. ``tryReadBody(into:)`` then gives the bytes, and after them whatever is still to come.
    ///
    /// - Parameter deadline: When to wait no longer; `nil` to take only what has arrived.
    package func readAhead(until deadline: MonotonicTime?) async {
        let isFit = state.withLock { state in
            !state.isReleased && !state.isCancelled && !state.hasFailed && state.ahead == nil
                && state.phase == .receivingBody && state.writer.map { $0.hasFinished } ?? true
        }
        guard isFit, gate?.isPaused != true, !isHeldBack(.down) else { return }
        let bound = connection.payloadByteCountBound
        guard bound <= Exchange.readAheadLimit || bound == .max else { return }
        var bytes: [UInt8] = []
        var failure: ExchangeError.Cause?
        do throws(ExchangeError) {
            reading: while bytes.count < Exchange.readAheadLimit {
                let room = max(1, min(8192, bound, Exchange.readAheadLimit - bytes.count))
                let piece = try readBodyAtOnce(upTo: room)
                bytes += piece
                if isFinished { break }
                if piece.isEmpty {
                    guard let deadline, MonotonicTime.now() < deadline else { break reading }
                    do throws(TransportError) {
                        try await connection.stream.waitUntilReadable(until: deadline)
                    } catch {
                        // Whatever ended the wait ends the next attempt as well, but for the deadline.
                        break reading
                    }
                }
            }
        } catch {
            failure = error.cause
        }
        guard !bytes.isEmpty || failure != nil else { return }
        let ahead = BodyAhead(bytes, failure: failure)
        state.withLock { ($0.ahead, $0.aheadOffset) = (ahead, 0) }
        hasReadAhead.store(true, ordering: .releasing)
    }

    /// Keeps the connection out of its pool's limits while code of the program runs; `nil` when it has been given back.
    package func exemption() -> Exemption? {
        isFinished ? nil : Exemption(lease, loop: loop)
    }
}
