import Synchronization

public import MartletCore

/// A connection after a switch of protocols (101, RFC 9110 §7.8): a stream of bytes in both directions.
///
/// One task may read while another one writes. Bytes that arrived together with the 101 are read first. Nothing is read
/// ahead: while no task reads, the TCP window fills, and the server stops sending. The timeouts and bandwidth limits of
/// the session do not apply; each operation has its own timeout, none by default.
///
/// The connection leaves the pool for good. It counts as leased, and its call as running, until it is closed: by
/// ``close()``, when its last reference is released, when both directions have ended, or when the session is
/// invalidated. After it was closed on this side, operations throw `CancellationError`, also those that are waiting.
public final class UpgradedConnection: Sendable {
    private struct State {
        var isReading = false
        var isWriting = false
        /// Whether the server has ended its direction.
        var isAtEnd = false
        /// Whether this side has ended its direction.
        var hasEndedWriting = false
    }

    private enum Direction { case reading, writing }

    /// The protocol in use, as the request named it, such as `websocket`.
    public let protocolName: String
    /// The head of the 101.
    public let response: HTTPResponse
    private let answer: StreamedResponse
    private let exchange: Exchange
    /// The end of the connection, which the call waits for.
    private let ended: OneShot<Void>
    private let state = Mutex(State())

    init(_ answer: StreamedResponse, _ exchange: Exchange, to protocolName: String, ended: OneShot<Void>) {
        (self.answer, self.exchange, self.protocolName, self.ended) = (answer, exchange, protocolName, ended)
        response = HeadConversion.response(answer.head)
    }

    deinit { close() }

    /// The URL of the request, after redirects, without user info.
    public var url: HTTPURL { answer.call.url }
    /// The number of the call, as in `HTTPExchange.callNumber`.
    public var callNumber: UInt64 { answer.call.number }
    /// The addresses of the connection, and the result of its TLS handshake.
    public var information: ConnectionInformation { exchange.connection.stream.information }

    /// Waits for bytes from the server, and returns them.
    ///
    /// Cancelling the task ends only this read: no byte is lost, and the connection can still be used. The same applies
    /// to the timeout.
    /// - Parameters:
    ///   - maximum: The maximum number of bytes, 1 to 65,536; 16,384 by default. Numbers outside are adjusted.
    ///   - timeout: The maximum wait; `nil` (the default) for no limit.
    /// - Returns: At least one byte; `nil` after the server has ended its direction.
    /// - Throws: An ``HTTPError``: `.timedOut`; `.connectionLost`; `.truncated` if TLS ended without a `close_notify`;
    ///   `.invalidRequest` if another task is reading. `CancellationError`.
    public func read(upTo maximum: Int = 16_384, timeout: Duration? = nil) async throws -> [UInt8]? {
        if state.withLock({ $0.isAtEnd }) { return nil }
        try begin(.reading)
        defer { end(.reading) }
        let start = MonotonicTime.now()
        do throws(ExchangeError) {
            let bytes = try await exchange.readUpgraded(upTo: maximum, until: start.deadline(after: timeout))
            if let bytes { return bytes }
        } catch { throw failure(error, "reading from", since: start) }
        change { $0.isAtEnd = true }
        return nil
    }

    /// Sends bytes. Returns when the system has accepted all of them: a server that does not read delays the return.
    ///
    /// If the task is cancelled or the timeout expires, the connection is closed, as a part of the bytes may be sent.
    /// - Parameter timeout: The maximum duration; `nil` (the default) for no limit.
    /// - Throws: An ``HTTPError``: `.timedOut`; `.connectionLost`; `.invalidRequest` if another task is writing, or after
    ///   ``closeWriting(timeout:)``. `CancellationError`.
    public func write(_ bytes: [UInt8], timeout: Duration? = nil) async throws {
        try await writing(timeout) { deadline throws(ExchangeError) in
            try await exchange.writeUpgraded(bytes, until: deadline)
        }
    }

    /// Ends the sending direction: the server reads the end of the stream, over TLS after a `close_notify`, and may still
    /// send. Call it before ``close()`` for an orderly end: a connection that is closed with unread bytes is reset, and
    /// bytes in transit may be lost. Calling it again has no effect.
    /// - Throws: Like ``write(_:timeout:)``.
    public func closeWriting(timeout: Duration? = nil) async throws {
        if state.withLock({ $0.hasEndedWriting }) { return }
        try await writing(timeout) { deadline throws(ExchangeError) in
            try await exchange.endUpgradedWriting(until: deadline)
        }
        change { $0.hasEndedWriting = true }
    }

    /// Closes the connection immediately, in both directions. Any task may call it; closing again has no effect.
    public func close() {
        exchange.finish()
        ended.fulfill(())
    }

    // MARK: Operations

    private func writing(_ timeout: Duration?, _ operation: (MonotonicTime) async throws(ExchangeError) -> Void)
        async throws
    {
        try begin(.writing)
        defer { end(.writing) }
        let start = MonotonicTime.now()
        do throws(ExchangeError) { try await operation(start.deadline(after: timeout)) } catch {
            switch error.cause {
            case .timedOut, .cancelled: close()
            default: break
            }
            throw failure(error, "writing to", since: start)
        }
    }

    /// Starts an operation, of which each direction has one at a time.
    private func begin(_ direction: Direction) throws {
        let misuse: String? = state.withLock { state in
            switch direction {
            case .reading where state.isReading: return "two tasks read the upgraded connection at the same time"
            case .writing where state.isWriting: return "two tasks write to the upgraded connection at the same time"
            case .writing where state.hasEndedWriting: return "a write after closeWriting()"
            case .reading: state.isReading = true
            case .writing: state.isWriting = true
            }
            return nil
        }
        guard let misuse else { return }
        throw mapped(answer.call.error(.invalidRequest, .upgraded, misuse, wasSent: true))
    }

    private func end(_ direction: Direction) {
        state.withLock { state in
            switch direction {
            case .reading: state.isReading = false
            case .writing: state.isWriting = false
            }
        }
    }

    /// Records the end of a direction. The connection is closed after the end of both.
    private func change(_ change: (inout State) -> Void) {
        let hasEnded = state.withLock { state in
            change(&state)
            return state.isAtEnd && state.hasEndedWriting
        }
        if hasEnded { close() }
    }

    private func failure(_ error: ExchangeError, _ activity: String, since start: MonotonicTime) -> any Error {
        guard case .timedOut = error.cause else {
            return mapped(answer.call.failure(error, attempts: answer.attempts, status: 101))
        }
        return mapped(
            answer.call.timedOut(
                .upgraded, "while \(activity) the upgraded connection", sentCount: answer.call.requestCount,
                timeout: .idle, since: start))
    }

    private func mapped(_ error: any Error) -> any Error {
        answer.call.settings.mapped(answer.call.reason(of: error))
    }
}
