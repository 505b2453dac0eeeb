package import MartletTransport
import Synchronization

// Reading of bodies before the program requests them, and of those that it no longer wants.
extension Exchange {
    /// The maximum size of a body that is read ahead, in bytes.
    package static let readAheadLimit = 64 * 1024

    /// Reads the rest of a short body into memory, so that the connection is free while user code handles the response.
    /// ``tryReadBody(into:)`` then returns these bytes first.
    /// - Parameter deadline: The time until which to wait for more bytes; `nil` to read only what was received.
    package func readAhead(until deadline: MonotonicTime?) async {
        guard state.withLock({ $0.ahead == nil && $0.isReceivingOnly }), !isPaused, !isHeldBack(.down) else { return }
        let bound = connection.payloadByteCountBound
        guard bound <= Exchange.readAheadLimit || bound == .max else { return }
        var bytes: [UInt8] = []
        var failure: ExchangeError?
        do throws(ExchangeError) {
            reading: while bytes.count < Exchange.readAheadLimit {
                let room = max(1, min(8192, bound, Exchange.readAheadLimit - bytes.count))
                let piece = try readBodyAtOnce(upTo: room)
                bytes += piece
                if isFinished { break }
                if piece.isEmpty {
                    guard let deadline, MonotonicTime.now() < deadline else { break reading }
                    do throws(TransportError) { try await connection.stream.waitUntilReadable(until: deadline) } catch {
                        // Unless the deadline has passed, the next read of the body fails for the same reason.
                        break reading
                    }
                }
            }
        } catch { failure = error }
        guard !bytes.isEmpty || failure != nil else { return }
        state.withLock { ($0.ahead, $0.aheadFailure) = (bytes[...], failure) }
        hasReadAhead.store(true, ordering: .releasing)
    }

    private static let drainLimit = 64 * 1024

    /// Ends the exchange like ``finish()``, but first waits for the rest of a small body, because many servers send it
    /// separately from the head. The next request can then reuse the connection.
    package func finish(waitingUntil deadline: MonotonicTime) async {
        if state.withLock({ $0.isReceivingOnly }), let payload = connection.remainingPayload,
            payload <= UInt64(Exchange.drainLimit)
        {
            _ = await connection.drain(limit: Exchange.drainLimit, until: deadline)
        }
        finish()
    }

    /// Releases the connection of an incomplete body. A small rest is read first, to reuse the connection.
    func abandon() {
        guard let payload = connection.remainingPayload, payload <= UInt64(Exchange.drainLimit) else {
            lease.release(isReusable: false)
            return
        }
        var left = Exchange.drainLimit
        if let isDrained = connection.drainReceived(limit: &left) {
            lease.release(isReusable: isDrained)
            return
        }
        // Unstructured: the caller has finished and must not wait for a peer. The task ends after at most a second.
        Task { [left, connection, lease] in
            let deadline = MonotonicTime.now().advanced(by: .seconds(1))
            lease.release(isReusable: await connection.drain(limit: left, until: deadline))
        }
    }
}

extension Exchange.State {
    /// Reads bytes that were read ahead; `nil` without such bytes.
    mutating func takeAhead(into target: ReceiveTarget) -> HTTP1Connection.BodyStep? {
        guard let left = ahead else { return nil }
        guard !left.isEmpty else {
            ahead = nil
            return aheadFailure.map { .failure($0.cause) }
        }
        let buffer = unsafe target.buffer
        let count = min(left.count, buffer.count)
        unsafe buffer.copyBytes(from: left.prefix(count))
        ahead = left.dropFirst(count)
        return .bytes(count, isLast: false)
    }
}
