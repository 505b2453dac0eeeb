/// Runs code of the program on behalf of a call: middleware, the delegate, handlers and token providers.
///
/// These rules hold for all of it:
/// 1. It runs in its own task. Cancelling the call, invalidating the session and the call's total timeout end the wait
///    immediately. The task is cancelled, and nothing waits for it.
/// 2. The call's connection, if it still has one, does not count against the pool's limits meanwhile, so that calls which
///    the code makes can always have one (``Exemption``).
/// 3. The session knows the calls that the code runs in, so that an invalidation does not wait for them.
package struct UserCode: Sendable {
    /// The calls that the running task works for, the outermost first.
    @TaskLocal static var enclosingCalls: [TransferControl] = []
    /// The time for code that is notified of the end of a call that was cancelled, or whose total timeout expired.
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
    ///   - name: The function, for the error of a call that ran out of time.
    ///   - phase: The call's phase, for the same error.
    ///   - exchange: The exchange whose connection the call holds.
    /// - Throws: Any error of the code; `CancellationError`; ``HTTPError/Code/timedOut``.
    package func run<Value: Sendable>(
        _ name: String, _ phase: HTTPError.Phase, holding exchange: Exchange? = nil, sentCount: Int = 0,
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        if control.isCancelled { throw CancellationError() }
        let exemption = exchange?.exemption()
        defer { exemption?.end() }
        let outcome = OneShot<Result<Value, any Error>>()
        let task = start(body, outcome)
        switch await wait(for: outcome, until: call.totalDeadline) {
        case .value(let result):
            // The code may have ended the call itself, before there was a wait to interrupt.
            if control.isCancelled { throw CancellationError() }
            return try result.get()
        case .interrupted:
            task.cancel()
            throw CancellationError()
        case .timedOut:
            task.cancel()
            throw call.totalTimeout(phase, "before \(name) returned", sentCount: sentCount)
        }
    }

    /// Runs code that is notified of the end of the call, and does not change it.
    ///
    /// It is also notified of a call that was cancelled or ran out of time, and has a second then.
    /// - Returns: The result of the code; `nil` if it took too long.
    @discardableResult func tell<Value: Sendable>(_ body: @escaping @Sendable () async -> Value) async -> Value? {
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
    ) -> Task<Void, Never> {
        let calls = UserCode.enclosingCalls + [control]
        // Unstructured, because a structured one would have to be waited for. It inherits priority and task-local values.
        return Task {
            await UserCode.$enclosingCalls.withValue(calls) {
                do { outcome.fulfill(.success(try await body())) } catch { outcome.fulfill(.failure(error)) }
            }
        }
    }

    /// Runs the closure that a response is passed to, in the task of the call.
    ///
    /// - Throws: Any error of the closure; `CancellationError` if the session was invalidated and its calls were cancelled.
    package static func handle<Value>(_ control: TransferControl, _ core: SessionCore, _ body: () async throws -> Value)
        async throws -> Value
    {
        control.exchange?.closureBegins()
        let value = try await $enclosingCalls.withValue(enclosingCalls + [control]) { try await body() }
        if control.isCancelled, core.calls.isInvalidated { throw CancellationError() }
        return value
    }
}
