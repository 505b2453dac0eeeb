/// A runner of the program's code on behalf of a call: middleware, the delegate, handlers and token providers.
///
/// These rules apply to all such code:
/// 1. It runs in its own task. Cancelling the call, invalidating the session and the call's total timeout end the wait
///    immediately. The task is cancelled, and nothing waits for it. One exception: at the total timeout, the call
///    waits up to one second for the error of a request that middleware is sending.
/// 2. While it runs, the call's connection does not count against the pool's limits. So calls that the code makes can
///    always get a connection (``Exemption``).
/// 3. ``enclosingCalls`` has the calls that the code runs for. If the code invalidates the session, it does not wait
///    for them.
package struct UserCode: Sendable {
    /// The calls that the running task works for, the outermost first.
    @TaskLocal static var enclosingCalls: [TransferControl] = []
    /// The maximum wait after a cancellation or the total timeout: for code that is notified of the end of the call,
    /// and for the error of a request that middleware is sending.
    private static let grace = Duration.seconds(1)

    /// The request that middleware sends, as the call sees it at its total timeout.
    package enum RequestState: Sendable {
        /// None is running, and the last one, if any, did not fail at the timeout.
        case idle
        case running
        /// It failed at the timeout.
        case failed(any Error)

        var isRunning: Bool { if case .running = self { true } else { false } }
    }

    private let control: TransferControl
    private let loop: EventLoop
    private let call: Call

    package init(_ call: Call, control: TransferControl, loop: EventLoop) {
        (self.call, self.control, self.loop) = (call, control, loop)
    }

    /// Runs code whose result the call needs.
    ///
    /// - Parameters:
    ///   - name: The name of the code, for the error at the total timeout.
    ///   - phase: The call's phase, for that error.
    ///   - exchange: The exchange whose connection the call holds.
    ///   - deadline: An end of the wait before the call's total timeout; `nil` for none.
    ///   - sentCount: The number of requests that the call has sent, read at the timeout.
    ///   - request: For middleware, which sends the requests of the call: returns the state of its request at the
    ///     timeout. The error of that request is preferred, because it has the phase and reports whether the request
    ///     was sent.
    /// - Throws: Any error of the code; `CancellationError`; ``HTTPError/Code/timedOut``.
    package func run<Value: Sendable>(
        _ name: String, _ phase: HTTPError.Phase, holding exchange: Exchange? = nil,
        until deadline: MonotonicTime? = nil,
        sentCount: @autoclosure () -> Int = 0, request: (() -> RequestState)? = nil,
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        if control.isCancelled { throw CancellationError() }
        let exemption = exchange?.exemption()
        defer { exemption?.end() }
        let outcome = OneShot<Result<Value, any Error>>()
        let task = start(body, outcome)
        // No effect if the code has returned.
        defer { task.cancel() }
        switch await wait(for: outcome, until: min(deadline ?? .distantFuture, call.totalDeadline)) {
        case .value(let result):
            // The code may have ended the call itself, before it started to wait.
            if control.isCancelled { throw CancellationError() }
            return try result.get()
        case .interrupted: throw CancellationError()
        case .timedOut:
            let state = request?() ?? .idle
            if request != nil, state.isRunning || sentCount() > 0 {
                // Both waits have the same deadline, so the code may be about to throw the error of its request or of a
                // response's body. If it takes too long, the error of the request is thrown.
                let grace = state.isRunning ? UserCode.grace : .milliseconds(50)
                switch await wait(for: end(of: task), until: .now().advanced(by: grace)) {
                case .value(let result): return try result.get()
                case .interrupted: throw CancellationError()
                case .timedOut: if case .failed(let error) = request?() { throw error }
                }
            }
            let sentCount = max(sentCount(), state.isRunning ? 1 : 0)
            throw call.timedOut(
                state.isRunning ? .awaitingHead : phase, "before \(name) returned", sentCount: sentCount)
        }
    }

    /// Runs code that is notified of an event, such as the end of the call, and does not change the call.
    ///
    /// If the call was cancelled or its total timeout expired, the code still runs, but for one second at most.
    /// - Returns: The result of the code; `nil` if it took too long, or the call was cancelled during the wait.
    @discardableResult func notify<Value: Sendable>(_ body: @escaping @Sendable () async -> Value) async -> Value? {
        let outcome = OneShot<Result<Value, any Error>>()
        let task = start(body, outcome)
        let graceEnd = MonotonicTime.now().advanced(by: UserCode.grace)
        var ended: OneShot<Result<Value, any Error>>.Outcome
        if control.isCancelled || Task.isCancelled {
            ended = await outcome.wait(until: graceEnd, on: loop)
        } else {
            ended = await wait(for: outcome, until: max(graceEnd, call.totalDeadline))
            if case .interrupted = ended {
                ended = await end(of: task).wait(until: .now().advanced(by: UserCode.grace), on: loop)
            }
        }
        if case .value(.success(let value)) = ended { return value }
        task.cancel()
        return nil
    }

    /// Waits for an outcome of the code. The deadline and a cancellation of the call or the task end the wait.
    private func wait<Value>(for outcome: OneShot<Value>, until deadline: MonotonicTime) async -> OneShot<Value>.Outcome
    {
        let wait = control.beginWait { outcome.interrupt() }
        defer { control.endWait(wait) }
        return await outcome.waitUnlessCancelled(until: deadline, on: loop)
    }

    /// Another event for the end of the code, after a wait for it has ended.
    private func end<Value>(of task: Task<Result<Value, any Error>, Never>) -> OneShot<Result<Value, any Error>> {
        let event = OneShot<Result<Value, any Error>>()
        // Unstructured, because the code may never return.
        Task { event.fulfill(await task.value) }
        return event
    }

    private func start<Value: Sendable>(
        _ body: @escaping @Sendable () async throws -> Value, _ outcome: OneShot<Result<Value, any Error>>
    ) -> Task<Result<Value, any Error>, Never> {
        let calls = UserCode.enclosingCalls + [control]
        // Unstructured, because the call would have to wait for a structured task.
        return Task {
            await UserCode.$enclosingCalls.withValue(calls) {
                let result: Result<Value, any Error>
                do { result = .success(try await body()) } catch { result = .failure(error) }
                outcome.fulfill(result)
                return result
            }
        }
    }

    /// Runs the closure that receives a response, in the task of the call.
    ///
    /// - Throws: Any error of the closure; `CancellationError` if an invalidation of the session cancelled the call.
    package static func handle<Value>(_ control: TransferControl, _ core: SessionCore, _ body: () async throws -> Value)
        async throws -> Value
    {
        control.exchange?.closureBegins()
        let value = try await $enclosingCalls.withValue(enclosingCalls + [control]) { try await body() }
        if control.isCancelled, core.calls.isInvalidated { throw CancellationError() }
        return value
    }
}
