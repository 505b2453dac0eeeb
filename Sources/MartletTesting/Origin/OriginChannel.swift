import FoundationEssentials
import MartletTransport
import MartletWire
import Synchronization

/// One connection's stream, with the bytes that were read from it and not used yet.
///
/// One task serves the connection. While that task runs a handler, the channel may look for the client's
/// leaving, which reads ahead on the event loop's thread; the lock keeps the two from reading at once.
final class OriginChannel: Sendable {
    private struct Receiving {
        /// Bytes received; those before `offset` are used.
        var bytes: [UInt8] = []
        var offset = 0
        var isAtEnd = false
        var failure: TransportError?
        /// Called once when the client has left, while it is watched for.
        var departure: (@Sendable () -> Void)?
    }

    private enum Reception {
        case bytes
        case wouldBlock
        case end
    }

    /// The stream.
    let stream: any ByteStream
    /// The socket below, to cut a TLS connection without its `close_notify`; `nil` in memory.
    let socket: Socket?
    /// The connection's number, from 1.
    let number: Int
    private let ledger: OriginLedger
    private let receiving = Mutex(Receiving())

    /// How many bytes one call reads at most.
    private static let readSize = 128 << 10
    /// How many bytes may lie unused before reading ahead pauses.
    private static let readAheadLimit = 256 << 10

    init(stream: any ByteStream, socket: Socket?, number: Int, ledger: OriginLedger) {
        self.stream = stream
        self.socket = socket
        self.number = number
        self.ledger = ledger
    }

    // MARK: Receiving

    /// Calls a closure with the unused bytes; it tells how many it used.
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

    /// Copies bytes out of a span.
    static func copy(_ range: Range<Int>, of span: Span<UInt8>) -> [UInt8] {
        unsafe span.extracting(range).withUnsafeBufferPointer { unsafe Array($0) }
    }

    /// Whether bytes lie unused.
    var hasUnread: Bool { receiving.withLock { $0.offset < $0.bytes.count } }

    /// Waits for more bytes.
    /// - Returns: `false` once the client has ended its direction.
    func fill() async throws(TransportError) -> Bool {
        while true {
            switch try receiving.withLock({ state throws(TransportError) in try receive(&state) }) {
            case .bytes: return true
            case .end: return false
            case .wouldBlock: try await stream.waitUntilReadable(until: .distantFuture)
            }
        }
    }

    private func receive(_ state: inout Receiving) throws(TransportError) -> Reception {
        if state.isAtEnd { return .end }
        if let failure = state.failure { throw failure }
        if state.offset > 0 {
            state.bytes.removeSubrange(..<state.offset)
            state.offset = 0
        }
        do throws(TransportError) {
            switch try stream.read(upTo: OriginChannel.readSize, appendingTo: &state.bytes) {
            case .bytes(let count):
                ledger.received(count)
                return .bytes
            case .wouldBlock: return .wouldBlock
            case .endOfStream:
                state.isAtEnd = true
                return .end
            }
        } catch {
            state.failure = error
            throw error
        }
    }

    /// Reads and throws away until the client has left, however it does.
    func awaitEnd() async {
        do throws(TransportError) {
            repeat { withUnread { span in (span.count, ()) } } while try await fill()
        } catch {
            // Leaving by a reset is leaving too.
            return
        }
    }

    // MARK: The client's leaving

    /// Calls a closure once when the client ends or resets the connection, until ``endWatch()``.
    func watchForDeparture(_ departure: @escaping @Sendable () -> Void) {
        receiving.withLock { $0.departure = departure }
        stream.watchWhileIdle(calling: { [weak self] in self?.readAhead() })
    }

    /// Ends the watch; the closure is not called any more.
    func endWatch() {
        let wasWatching = receiving.withLock { state in
            defer { state.departure = nil }
            return state.departure != nil
        }
        if wasWatching { stream.endIdleWatch() }
    }

    private func readAhead() {
        let departure = receiving.withLock { state -> (@Sendable () -> Void)? in
            guard state.departure != nil else { return nil }
            while state.bytes.count - state.offset < OriginChannel.readAheadLimit {
                do throws(TransportError) {
                    switch try receive(&state) {
                    case .bytes: continue
                    case .wouldBlock: return nil
                    case .end: return state.departure.take()
                    }
                } catch {
                    return state.departure.take()
                }
            }
            return nil
        }
        departure?()
    }

    // MARK: Sending

    /// Sends all of the bytes, waiting where the client does not take them.
    func send(_ bytes: [UInt8]) async throws(TransportError) {
        var offset = 0
        while offset < bytes.count {
            let count = try stream.write(bytes, from: offset)
            if count == 0 { try await stream.waitUntilWritable(until: .distantFuture) }
            offset += count
            ledger.sent(count)
        }
    }

    // MARK: Ending

    /// Closes the stream in order.
    func close() { stream.close() }

    /// Ends the stream with a reset.
    func reset() { stream.reset() }

    /// Closes the socket below TLS, so that the client sees an end without a `close_notify`.
    func cut() {
        guard let socket else { return stream.close() }
        socket.shutdownWriting()
        socket.close()
        stream.close()
    }

    /// Closes so that a client that is still sending can read the answer first: ends the sending direction
    /// and takes what comes, for two seconds at most (RFC 9112 §9.6).
    func closeLingering() async {
        stream.shutdownWriting()
        let deadline = MonotonicTime.now().advanced(by: .seconds(2))
        do throws(TransportError) {
            while MonotonicTime.now() < deadline {
                withUnread { span in (span.count, ()) }
                switch try receiving.withLock({ state throws(TransportError) in try receive(&state) }) {
                case .bytes: continue
                case .end: return close()
                case .wouldBlock: try await stream.waitUntilReadable(until: deadline)
                }
            }
        } catch {
            // The client did not wait for the end.
        }
        close()
    }
}

extension ByteStream {
    /// Tries to read, and appends what came to an array.
    /// - Parameter byteCount: The most bytes to take.
    func read(upTo byteCount: Int, appendingTo bytes: inout [UInt8]) throws(TransportError) -> ReadOutcome {
        let result = unsafe withUnsafeTemporaryAllocation(byteCount: byteCount, alignment: 16) {
            buffer -> Result<ReadOutcome, TransportError> in
            do throws(TransportError) {
                let outcome = unsafe try read(into: buffer)
                if case .bytes(let count) = outcome {
                    unsafe bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
                }
                return .success(outcome)
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }
}

/// The value of the Date field, written anew once a second.
final class OriginClock: Sendable {
    private let last = Mutex((second: Int64.min, text: ""))

    init() {}

    /// The present, as HTTP writes it.
    var date: String {
        let second = Int64(Date().timeIntervalSince1970.rounded(.down))
        return last.withLock { last in
            if last.second != second { last = (second, HTTPDate(secondsSinceEpoch: second).text) }
            return last.text
        }
    }
}
