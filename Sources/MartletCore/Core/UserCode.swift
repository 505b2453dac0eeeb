/// A runner of the program's code on behalf of a call: middleware, the delegate, handlers and token providers.
///
/// These rules apply to all such code:
/// 1. It runs in its own task. Cancelling the call, invalidating the session and the call's total timeout end the wait
///    immediately. The task is cancelled, and nothing waits for it. One exception: at the total timeout, the call
///    waits up to one second for the error of a request that middleware is sending.
/// 2. While it runs, the call's connection does not count against the pool's limits. So calls made by the code can
///    always get a connection (``Exemption``).
/// 3. The session knows which calls the code runs in, so that an invalidation does not wait for them.
package struct UserCode: Sendable {
    /// The calls that the running task works for, the outermost first.
    @TaskLocal static var enclosingCalls: [TransferControl] = []
    /// The time for code that is notified of the end of a call that was cancelled, or whose total timeout expired, and
    /// for the error of a request at the total timeout.
    private static let grace = Duration.seconds(1)

    private let control: TransferControl
    private let loop: EventLoop
    private let call: Call

    package init(_ call: Call, control: TransferControl, loop: EventLoop) {
        self.call = call
        self.control = control
        self.loop = loop
    }

    /// Runs code whose result the call needs.
    ///
    /// - Parameters:
    ///   - name: The function, for the error of a call whose timeout expired.
    ///   - phase: The call's phase, for the same error.
    ///   - exchange: The exchange whose connection the call holds.
    ///   - sentCount: The number of requests that the call has sent, at the timeout.
    ///   - isSending: For code that sends the requests of the call: whether it waits for one at the timeout. The error
    ///     of that request then comes first: it has the phase, and reports whether the request was sent.
    /// - Throws: Any error of the code; `CancellationError`; ``HTTPError/Code/timedOut``.
    package func run<Value: Sendable>(
        _ name: String, _ phase: HTTPError.Phase, holding exchange: Exchange? = nil,
        sentCount: @autoclosure () -> Int = 0, isSending: (() -> Bool)? = nil,
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        if control.isCancelled { throw CancellationError() }
        let exemption = exchange?.exemption()
        defer { exemption?.end() }
        let outcome = OneShot<Result<Value, any Error>>()
        let task = start(body, outcome)
        // Without effect on code that has returned.
        defer { task.cancel() }
        switch await wait(for: outcome, until: call.totalDeadline) {
        case .value(let result):
            // The code may have ended the call itself, before it started to wait.
            if control.isCancelled { throw CancellationError() }
            return try result.get()
        case .interrupted: throw CancellationError()
        case .timedOut:
            let sends = isSending?() == true
            if isSending != nil, sends || sentCount() > 0 {
                // A request that has failed at the same moment is about to be reported by the code.
                let grace = sends ? UserCode.grace : .milliseconds(50)
                let late = OneShot<Result<Value, any Error>>()
                // Unstructured, because the code may never return.
                Task { late.fulfill(await task.value) }
                switch await wait(for: late, until: .now().advanced(by: grace)) {
                case .value(let result): return try result.get()
                case .interrupted: throw CancellationError()
                case .timedOut: break
                }
            }
            throw call.timedOut(
                sends ? .awaitingHead : phase, "before \(name) returned",
                sentCount: max(sentCount(), sends ? 1 : 0))
        }
    }

    /// Runs code that is notified of the end of the call, and does not change it.
    ///
    /// It is also notified if the call was cancelled or its timeout expired, and then has one second.
    /// - Returns: The result of the code; `nil` if it took too long.
    @discardableResult func notify<Value: Sendable>(_ body: @escaping @Sendable () async -> Value) async -> Value? {
        let outcome = OneShot<Result<Value, any Error>>()
        let task = start(body, outcome)
        let graceEnd = MonotonicTime.now().advanced(by: UserCode.grace)
        let ended: OneShot<Result<Value, any Error>>.Outcome
        if control.isCancelled || Task.isCancelled {
            ended = await outcome.wait(until: graceEnd, on: loop)
        } else {
            ended = await wait(for: outcome, until: max(graceEnd, call.totalDeadline))
        }
        if case .value(.success(let value)) = ended { return value }
        task.cancel()
        return nil
    }

    /// Waits for the code, until the call or its task is cancelled.
    private func wait<Value>(for outcome: OneShot<Value>, until deadline: MonotonicTime) async -> OneShot<Value>.Outcome
    {
        let wait = control.beginWait { outcome.interrupt() }
        defer { control.endWait(wait) }
        return await outcome.waitUnlessCancelled(until: deadline, on: loop)
    }

    private func start<Value: Sendable>(
        _ body: @escaping @Sendable () async throws -> Value, _ outcome: OneShot<Result<Value, any Error>>
    ) -> Task<Result<Value, any Error>, Never> {
        let calls = UserCode.enclosingCalls + [control]
        // Unstructured, because the call would have to wait for a structured task. It inherits priority and task-local
        // values.
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
    /// - Throws: Any error of the closure; `CancellationError` if the session was invalidated and its calls were
    ///   cancelled.
    package static func handle<Value>(_ control: TransferControl, _ core: SessionCore, _ body: () async throws -> Value)
        async throws -> Value
    {
        control.exchange?.closureBegins()
        let value = try await $enclosingCalls.withValue(enclosingCalls + [control]) { try await body() }
        if control.isCancelled, core.calls.isInvalidated { throw CancellationError() }
        return value
    }
}
