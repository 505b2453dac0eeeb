import MartletTransport
import Synchronization

/// One connection's stream, with the bytes that were received and not used yet.
///
/// One task serves the connection. While it runs a handler, the channel can observe whether the client disconnects. For
/// that, it reads ahead on the event loop's thread. The lock prevents simultaneous reads.
final class OriginChannel: Sendable {
    private struct Receiving {
        /// Received bytes; those before `offset` are used.
        var bytes: [UInt8] = []
        var offset = 0
        var isAtEnd = false
        var failure: TransportError?
        /// Called once when the client disconnects, while it is observed.
        var departure: (@Sendable () -> Void)?
    }

    let stream: any ByteStream
    /// The socket below, to cut a TLS connection without its `close_notify`; `nil` in memory.
    let socket: Socket?
    let number: Int
    let recorder: OriginRecorder
    private let receiving = Mutex(Receiving())
    /// The maximum number of bytes that one call reads.
    private static let readSize = 128 << 10
    /// The number of unused bytes at which reading ahead pauses.
    private static let readAheadLimit = 256 << 10

    init(stream: any ByteStream, socket: Socket?, number: Int, recorder: OriginRecorder) {
        (self.stream, self.socket, self.number, self.recorder) = (stream, socket, number, recorder)
    }

    // MARK: Receiving

    /// Calls a closure with the unused bytes; it returns the number of bytes that it used.
    func withUnread<Value: Sendable, Failure: Error>(
        _ body: (Span<UInt8>) throws(Failure) -> (consumed: Int, value: Value)
    ) throws(Failure) -> Value {
        try receiving.withLock { state throws(Failure) in
            let (consumed, value) = try body(state.bytes.span.extracting(state.offset...))
            state.offset += consumed
            if state.offset == state.bytes.count {
                state.bytes.removeAll(keepingCapacity: state.bytes.capacity <= OriginChannel.readSize)
                state.offset = 0
            }
            return value
        }
    }

    static func copy(_ range: Range<Int>, of span: Span<UInt8>) -> [UInt8] {
        unsafe span.extracting(range).withUnsafeBufferPointer { unsafe Array($0) }
    }

    var hasUnread: Bool { receiving.withLock { $0.offset < $0.bytes.count } }

    /// Waits for more bytes.
    /// - Returns: `false` once the client has ended its direction.
    func fill(until deadline: MonotonicTime = .distantFuture) async throws(TransportError) -> Bool {
        while true {
            switch try receiving.withLock({ state throws(TransportError) in try receive(&state) }) {
            case .bytes: return true
            case .endOfStream: return false
            case .wouldBlock: try await stream.waitUntilReadable(until: deadline)
            }
        }
    }

    private func receive(_ state: inout Receiving) throws(TransportError) -> ReadOutcome {
        if state.isAtEnd { return .endOfStream(isClean: true) }
        if let failure = state.failure { throw failure }
        if state.offset > 0 {
            state.bytes.removeSubrange(..<state.offset)
            state.offset = 0
        }
        do throws(TransportError) {
            let outcome = try stream.read(upTo: OriginChannel.readSize, appendingTo: &state.bytes)
            switch outcome {
            case .bytes(let count): recorder.count { $0.bytesReceived += UInt64(count) }
            case .wouldBlock: break
            case .endOfStream: state.isAtEnd = true
            }
            return outcome
        } catch {
            state.failure = error
            throw error
        }
    }

    /// Reads and discards bytes until the client has left, by an end or a reset, or until a deadline.
    func discard(until deadline: MonotonicTime = .distantFuture) async {
        do throws(TransportError) {
            while MonotonicTime.now() < deadline {
                withUnread { span in (span.count, ()) }
                guard try await fill(until: deadline) else { return }
            }
        } catch {
            // A reset or the deadline ends the wait, too.
            return
        }
    }

    // MARK: Observing the client

    /// Calls a closure once when the client ends or resets the connection, until ``stopObserving()``.
    func observeDeparture(_ departure: @escaping @Sendable () -> Void) {
        receiving.withLock { $0.departure = departure }
        stream.observeIdle(calling: { [weak self] in self?.readAhead() })
    }

    /// Ends the observation; the closure is no longer called.
    func stopObserving() { if receiving.withLock({ $0.departure.take() }) != nil { stream.stopObservingIdle() } }

    private func readAhead() {
        let departure = receiving.withLock { state -> (@Sendable () -> Void)? in
            guard state.departure != nil else { return nil }
            do throws(TransportError) {
                while state.bytes.count - state.offset < OriginChannel.readAheadLimit {
                    switch try receive(&state) {
                    case .bytes: continue
                    case .wouldBlock: return nil
                    case .endOfStream: return state.departure.take()
                    }
                }
                return nil
            } catch { return state.departure.take() }
        }
        departure?()
    }

    // MARK: Sending

    /// Sends all of the bytes, waiting while the client does not accept them.
    func send(_ bytes: [UInt8]) async throws(TransportError) {
        var offset = 0
        while offset < bytes.count {
            let count = try stream.write(bytes, from: offset)
            if count == 0 { try await stream.waitUntilWritable(until: .distantFuture) }
            offset += count
            recorder.count { $0.bytesSent += UInt64(count) }
        }
    }

    /// Sends all of the bytes of a response. A failure means that the client has disconnected.
    func respond(_ bytes: [UInt8]) async throws(OriginError) {
        do throws(TransportError) { try await send(bytes) } catch { throw .disconnected("\(error)") }
    }

    // MARK: Ending

    /// Closes the socket below TLS, so that the client sees an end without a `close_notify`.
    func cut() {
        guard let socket else { return stream.close() }
        socket.shutdownWriting()
        socket.close()
        stream.close()
    }

    /// Closes so that a client that is still sending can read the response first: ends the sending direction and
    /// discards received bytes for two seconds at most (RFC 9112 §9.6).
    func closeLingering() async {
        stream.shutdownWriting()
        await discard(until: MonotonicTime.now().advanced(by: .seconds(2)))
        stream.close()
    }
}

extension ByteStream {
    /// Tries to read, and appends the bytes to an array.
    /// - Parameter byteCount: The maximum number of bytes to read.
    func read(upTo byteCount: Int, appendingTo bytes: inout [UInt8]) throws(TransportError) -> ReadOutcome {
        let result = unsafe withUnsafeTemporaryAllocation(byteCount: byteCount, alignment: 16) {
            buffer -> Result<ReadOutcome, TransportError> in
            do throws(TransportError) {
                let outcome = unsafe try read(into: buffer)
                if case .bytes(let count) = outcome {
                    unsafe bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
                }
                return .success(outcome)
            } catch { return .failure(error) }
        }
        return try result.get()
    }
}
