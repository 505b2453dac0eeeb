import MartletCredentials
import MartletConnections
import MartletTransport

/// Runs one call as far as the response's head: connection, request, head; again on a fresh connection where a kept one
/// turned out dead, and without its expectation after a 417.
///
/// Here is what waits; what is done in between are methods of ``CallAttempts``, which do not. Each variable of a function
/// that waits is held for as long as it does, by every call in flight.
package struct CallRunner: Sendable {
    let core: SessionCore
    let dialer: Dialer
    let call: Call
    let control: TransferControl
    /// Asked before each write and each read; `nil` for the control, where somebody holds it.
    var gate: (any TransferGate)?

    package init(
        core: SessionCore, dialer: Dialer, call: Call, control: TransferControl,
        gate: (any TransferGate)? = nil
    ) {
        self.core = core
        self.dialer = dialer
        self.call = call
        self.control = control
        self.gate = gate
    }

    /// Which of those that wait for a connection goes first.
    var priority: RequestPriority {
        // Who was not handed the call cannot have changed it: no need to look.
        (control.isExposed ? control.priority : nil) ?? call.options.priority
            ?? call.settings.configuration.priority
    }

    /// Sends the request and waits for the final head.
    /// - Throws: ``HTTPError``, or `CancellationError`.
    package func run() async throws -> Answer {
        var attempts = CallAttempts(self)
        while true {
            if try !attempts.prepare(self) {
                try attempts.compose(self, try await body(of: attempts.composer))
            }
            if control.isExposed { try await hold() }
            let exchange: Exchange
            switch try attempts.acquire(self) {
            case .lease(let lease) where !(control.isExposed && control.isPaused):
                exchange = attempts.begin(self, on: lease, since: attempts.asked)
            case let acquisition:
                var lease = try await connection(acquisition, &attempts)
                if attempts.refuses(lease, call) {
                    lease = try await freshConnection(&attempts, instead: lease)
                }
                exchange = attempts.begin(self, on: lease, since: MonotonicTime.now())
            }
            do {
                if control.isExposed { try await pause(exchange) }
                try attempts.send(self, on: exchange)
                receiving: while true {
                    if control.isExposed { try await pause(exchange) }
                    switch try attempts.receive(self, from: exchange) {
                    case .answer(let answer): return answer
                    case .again: break receiving
                    case .wait(let deadline, let clock):
                        if core.waitsAwake, exchange.arrives(within: core.briefWait) { continue }
                        try await exchange.wait(until: deadline, clock)
                    }
                }
            } catch let error as ExchangeError {
                try attempts.judge(self, error, exchange)
            }
        }
    }

    // Errors that are told by their types have room in each frame that may get them; these are boxed, when they come.

    @inline(never)
    private func body(of composer: RequestComposer) async throws -> RequestComposer.PreparedBody {
        let prepared = try await composer.prepareBody()
        guard case .source(let source, 0?) = prepared.body else { return prepared }
        try await UserCode(call, control: control, loop: core.loop).run("the body's sequence", .preparing) {
            try await composer.confirmEmpty(source)
        }
        return RequestComposer.PreparedBody(body: .bytes([]), length: 0)
    }

    @inline(never)
    private func pause(_ exchange: Exchange) async throws {
        try await exchange.waitWhilePaused()
    }

    /// Waits while the call is paused, before it has a connection.
    @inline(never)
    private func hold() async throws {
        guard control.isPaused else { return }
        control.begin(.none)
        await control.waitWhilePaused(until: call.totalDeadline, on: core.loop)
        if control.isCancelled || Task.isCancelled { throw CancellationError() }
        guard MonotonicTime.now() < call.totalDeadline else { throw pausedForTooLong() }
    }

    /// Waits for a connection. A call that is paused meanwhile has no place in the line, and no connection; when it goes on, it
    /// has its old place.
    @inline(never)
    private func connection(
        _ acquisition: ConnectionPool.Acquisition, _ attempts: inout CallAttempts
    ) async throws -> Lease {
        var acquisition = acquisition
        while true {
            let lease: Lease?
            switch acquisition {
            case .lease(let given): lease = given
            case .ticket(let ticket): lease = try await self.lease(for: ticket, attempts.number)
            }
            guard !control.isPaused, let lease else {
                lease?.returnUnused()
                let paused = MonotonicTime.now()
                try await hold()
                acquisition = try attempts.acquire(self, again: acquisition, pausedSince: paused)
                continue
            }
            return lease
        }
    }

    /// Waits in the line.
    /// - Returns: The connection; `nil` where the call was paused, and gave up its place.
    @inline(never)
    private func lease(for ticket: ConnectionPool.Ticket, _ attempts: Int) async throws -> Lease? {
        control.begin(.waiting(ticket))
        ticket.nest(in: UserCode.enclosingCalls.compactMap(\.exchange))
        do throws(ExchangeError) {
            return try await ticket.lease()
        } catch {
            if case .cancelled = error.cause, !control.isCancelled { return nil }
            throw failure(error, attempts)
        }
    }

    /// A connection that has carried no exchange: what another request gives back meanwhile is as old as the one that died.
    @inline(never)
    private func freshConnection(_ attempts: inout CallAttempts, instead given: Lease) async throws -> Lease {
        var lease = given
        while attempts.refuses(lease, call) {
            lease = try await connection(try attempts.acquire(self, insteadOf: lease), &attempts)
        }
        return lease
    }

    @inline(never)
    private func failure(_ error: ExchangeError, _ attempts: Int) -> any Error {
        control.isCancelled ? CancellationError() : call.failure(error, attempts: attempts)
    }

    @inline(never)
    private func pausedForTooLong() -> HTTPError {
        HTTPError(
            .timedOut, phase: .preparing, message: "the total clock ran out while the call was paused",
            origin: call.url.origin.description, clock: .total, elapsed: MonotonicTime.now().since(call.start)
        )
    }
}
