import MartletConnections
import MartletTransport

/// Runs code of the program on behalf of a call: middleware, the delegate, handlers and token providers.
///
/// The rules that hold for all of it:
/// 1. It runs in a task of its own. Cancelling the call, invalidating the session and the call's total clock end the wait
///    at once. The task is cancelled, and nobody waits for it.
/// 2. The call's connection, where it still has one, does not count against the pool's limits meanwhile, so that calls which
///    the code makes can always have one (``Exemption``).
/// 3. The session knows which calls the code runs in, so that an invalidation does not wait for them.
package struct UserCode: Sendable {
    /// The calls that the running task works for, the outermost first.
    @TaskLocal static var enclosingCalls: [TransferControl] = []

    /// The time that code has which is told of the end of a call that was cancelled, or whose total clock ran out.
    private static let grace = Duration.seconds(1)

    private let control: TransferControl
    private let loop: EventLoop
    private let call: Call

    init(_ call: Call, control: TransferControl, loop: EventLoop) {
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
    /// - Throws: What the code throws; `CancellationError`; ``HTTPError/Code/timedOut``.
    package func run<Value: Sendable>(
        _ name: String, _ phase: HTTPError.Phase, holding exchange: Exchange? = nil, sentCount: Int = 0,
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        if control.isCancelled { throw CancellationError() }
        let exemption = exchange?.exemption()
        defer { exemption?.end() }
        let outcome = OneShot<Result<Value, any Error>>()
        let task = start(body, outcome)
        let wait = control.beginWait(outcome)
        let ended = await outcome.waitUnlessCancelled(until: call.totalDeadline, on: loop)
        control.endWait(wait)
        switch ended {
        case .value(let result):
            // The code may have ended the call itself, before there was a wait to interrupt.
            if control.isCancelled { throw CancellationError() }
            return try result.get()
        case .interrupted:
            task.cancel()
            throw CancellationError()
        case .timedOut:
            task.cancel()
            throw HTTPError(
                .timedOut, phase: phase, message: "the total clock ran out before \(name) returned",
                wasSent: sentCount > 0, origin: call.url.origin.description, clock: .total,
                elapsed: MonotonicTime.now().since(call.start), attempts: max(1, sentCount))
        }
    }

    /// Runs code that is told of the end of the call, and does not change it.
    ///
    /// The end of a call that was cancelled or ran out of time is told as well, for which the code has a second.
    /// - Returns: What the code returned; `nil` if it took too long.
    @discardableResult
    func tell<Value: Sendable>(_ body: @escaping @Sendable () async -> Value) async -> Value? {
        let outcome = OneShot<Result<Value, any Error>>()
        let task = start(body, outcome)
        let graceEnd = MonotonicTime.now().advanced(by: UserCode.grace)
        let ended: OneShot<Result<Value, any Error>>.Outcome
        if control.isCancelled || Task.isCancelled {
            ended = await outcome.wait(until: graceEnd, on: loop)
        } else {
            let wait = control.beginWait(outcome)
            ended = await outcome.waitUnlessCancelled(until: max(graceEnd, call.totalDeadline), on: loop)
            control.endWait(wait)
        }
        if case .value(.success(let value)) = ended { return value }
        task.cancel()
        return nil
    }

    private func start<Value: Sendable>(
        _ body: @escaping @Sendable () async throws -> Value, _ outcome: OneShot<Result<Value, any Error>>
    ) -> Task<Void, Never> {
        let calls = UserCode.enclosingCalls + [control]
        // Unstructured, because nobody can wait for code that does not return. It inherits priority and task-locals.
        return Task {
            await UserCode.$enclosingCalls.withValue(calls) {
                do {
                    outcome.fulfil(.success(try await body()))
                } catch {
                    outcome.fulfil(.failure(error))
                }
            }
        }
    }

    /// Runs the closure that a response is handed to, in the task of the call.
    ///
    /// - Throws: What the closure throws; `CancellationError` if the session was invalidated and its calls were cancelled.
    package static func handle<Value>(
        _ control: TransferControl, _ core: SessionCore, _ body: () async throws -> Value
    ) async throws -> Value {
        control.exchange?.closureBegins()
        let value = try await $enclosingCalls.withValue(enclosingCalls + [control]) { try await body() }
        if control.isCancelled, core.calls.isInvalidated { throw CancellationError() }
        return value
    }
}

/// A wait that can be ended from outside.
protocol InterruptibleWait: Sendable { @discardableResult func interrupt() -> Bool }

extension OneShot: InterruptibleWait {}
