import Synchronization

/// The lease that an opened response holds on its call.
///
/// Three parties share the lease. The task of the call waits in ``ended(_:on:)`` while the program reads the body, and
/// then ends the call. The reader, which only the program owns, ends the lease after the last byte (``read(_:)``) or
/// when it is released. The control ends it when the call is cancelled.
package final class BodyLease: Sendable {
    /// The outcome of the body: success if it was read to its end or released, otherwise an error.
    typealias End = Result<Void, any Error>

    private struct State {
        /// The response, or the error of the call, until ``response()`` returns it.
        var opened: Result<OpenResponse, any Error>?
        /// Whether a response was opened.
        var isOpened = false
        /// Whether the caller has stopped waiting for the response.
        var isUnwanted = false
        var isReading = false
        /// The time of the last read.
        var lastRead = MonotonicTime.now()
        var end: End?
        /// The wait in ``ended(_:on:)``.
        var wait: OneShot<Void>?
        /// The outcome of the call, after its end.
        var closed: End?
    }

    private let control: TransferControl
    /// The timeout ``Timeouts/unread``.
    private let limit: Duration?
    private let totalDeadline: MonotonicTime
    private let state = GuardedState(State())

    init(_ control: TransferControl, limit: Duration?, totalDeadline: MonotonicTime) {
        (self.control, self.limit, self.totalDeadline) = (control, limit, totalDeadline)
    }

    // MARK: The caller

    /// Waits for the response.
    func response() async throws -> OpenResponse {
        let result = await withTaskCancellationHandler {
            await state.next { $0.opened.take() }
        } onCancel: {
            control.cancel()
        }
        // The call may have been cancelled at the same time as the response was received.
        if let result, !control.isCancelled { return try result.get() }
        let late = state.withLock { state in
            state.isUnwanted = true
            return state.opened.take()
        }
        withExtendedLifetime(late) {}
        throw CancellationError()
    }

    // MARK: The call

    /// Passes the response to the caller. After that, only the program owns its reader.
    @inline(never) func open(_ answer: StreamedResponse) {
        let reader = BodyReader(answer, control: control, byteLimit: answer.call.options.bodyLimit?.bytes, lease: self)
        answer.channel.heldExchange?.holdBegins()
        let response = OpenResponse(answer, reader)
        // A response without a waiter is released outside of the lock.
        state.change { state in
            state.isOpened = true
            if !state.isUnwanted { state.opened = .success(response) }
        }
        // The connection of an empty body is released before the program reads the body.
        if answer.expectedContentLength == 0 { end(.success(())) }
    }

    /// Waits until the body has ended, or was not read for too long.
    /// - Throws: The error that ended the body; `CancellationError`.
    func ended(_ call: Call, on loop: EventLoop) async throws {
        let cancellation = control.beginWait { [self] in end(.failure(CancellationError())) }
        defer { control.endWait(cancellation) }
        while true {
            let wait = OneShot<Void>()
            let (end, deadline) = state.withLock { state -> (End?, MonotonicTime) in
                state.wait = wait
                return (state.end, self.deadline(state))
            }
            if let end { return try end.get() }
            guard case .timedOut = await wait.wait(until: deadline, on: loop) else { continue }
            let now = MonotonicTime.now()
            self.end(.failure(timeout(of: call, at: now))) { !$0.isReading && self.deadline($0) <= now }
        }
    }

    /// Returns the deadline for the next read. While a read is running, it has its own timeouts.
    private func deadline(_ state: State) -> MonotonicTime {
        if state.isReading { return MonotonicTime.now().deadline(after: limit) }
        return min(totalDeadline, state.lastRead.deadline(after: limit))
    }

    private func timeout(of call: Call, at now: MonotonicTime) -> HTTPError {
        guard now < totalDeadline else {
            return call.timedOut(.receivingBody, "before the body was read to its end", sentCount: call.requestCount)
        }
        let text = HTTPError.text(limit ?? .zero)
        var error = call.error(
            .timedOut, .receivingBody,
            "the opened body was not read for \(text): read it, release it, or change timeouts.unread", wasSent: true)
        (error.timeout, error.elapsed) = (.unread, limit)
        return error
    }

    /// Records the end of the call.
    func close(_ result: End) {
        state.change { state in
            state.closed = result
            state.end = state.end ?? result
            if case .failure(let error) = result, !state.isOpened { state.opened = .failure(error) }
        }
    }

    // MARK: The reader

    /// Ends the body. Only the first call has an effect.
    func end(_ end: End) { self.end(end) { _ in true } }

    private func end(_ end: End, where applies: (State) -> Bool) {
        let wait = state.change { state -> OneShot<Void>? in
            guard state.end == nil, applies(state) else { return nil }
            state.end = end
            return state.wait.take()
        }
        wait?.fulfill(())
    }

    /// Runs one read of the body. After its last byte, returns when the call has ended.
    /// - Throws: The error of the body, mapped by the session's mapper; `CancellationError`.
    func read(_ next: () async throws -> [UInt8]?) async throws -> [UInt8]? {
        let (end, isBusy) = state.withLock { state -> (End?, Bool) in
            defer { if state.end == nil { state.isReading = true } }
            return (state.end, state.isReading)
        }
        switch end {
        case .success: return nil
        case .failure(let error): throw await reason(of: error)
        case nil: break
        }
        guard !isBusy else {
            throw HTTPError(
                .invalidRequest, phase: .receivingBody,
                message: "two tasks read the body at the same time: only one task may read an opened body",
                wasSent: true)
        }
        do {
            let piece = try await withTaskCancellationHandler {
                try await next()
            } onCancel: {
                control.cancel()
            }
            let now = MonotonicTime.now()
            state.withLock { ($0.isReading, $0.lastRead) = (false, now) }
            if let piece { return piece }
            self.end(.success(()))
            _ = await state.next { $0.closed }
            return nil
        } catch {
            self.end(.failure(error))
            throw await reason(of: error)
        }
    }

    /// Returns the error that the call ended with after an error of the body.
    func reason(of error: any Error) async -> any Error {
        // A cancellation is reported immediately, and never mapped.
        if error is CancellationError { return error }
        switch await state.next({ $0.closed }) {
        case .failure(let reason): return reason
        case .success: return error
        case nil: return CancellationError()
        }
    }
}
