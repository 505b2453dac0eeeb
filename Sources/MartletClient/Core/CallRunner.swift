import MartletConnections
import MartletTransport

/// Runs one call as far as the response's head: connection, request, head; again on a fresh connection where a kept one
/// turned out dead, and without its expectation after a 417.
struct CallRunner: Sendable {
    let core: SessionCore
    let dialer: Dialer
    let call: Call
    let control: TransferControl

    /// Sends the request and waits for the final head.
    /// - Throws: ``HTTPError``, or `CancellationError`.
    func run() async throws -> Answer {
        let attempts = CallAttempts(self)
        while true {
            if try attempts.begin() { try await attempts.openBody() }
            try attempts.compose()
            if control.isExposed { try await hold() }
            let exchange: Exchange
            switch try attempts.acquire() {
            case .lease(let idle): exchange = attempts.exchange(on: idle, hasWaited: false)
            case .ticket(let ticket):
                control.begin(.waiting(ticket))
                exchange = attempts.exchange(on: try await lease(ticket, attempts.count), hasWaited: true)
            }
            var step = CallAttempts.Step.ready
            repeat {
                do throws(ExchangeError) {
                    if case .wait(let deadline, let clock) = step {
                        try await exchange.wait(until: deadline, clock)
                    }
                    if control.isExposed { try await exchange.waitWhilePaused() }
                } catch {
                    try attempts.judge(error, exchange)
                    step = .again
                    break
                }
                step = try attempts.step(exchange)
            } while step.isWait
            if case .answer(let answer) = step { return answer }
        }
    }

    /// Waits while the call is paused, before it has a connection.
    private func hold() async throws {
        guard control.isPaused else { return }
        control.begin(.none)
        await control.waitWhilePaused(until: call.totalDeadline, on: core.loop)
        if control.isCancelled || Task.isCancelled { throw CancellationError() }
        guard MonotonicTime.now() < call.totalDeadline else {
            throw HTTPError(
                .timedOut, phase: .preparing, message: "the total clock ran out while the call was paused",
                origin: call.url.origin.description, clock: .total,
                elapsed: MonotonicTime.now().since(call.start))
        }
    }

    private func lease(_ ticket: ConnectionPool.Ticket, _ attempts: Int) async throws -> Lease {
        do throws(ExchangeError) {
            return try await ticket.lease()
        } catch {
            if control.isCancelled { throw CancellationError() }
            throw call.failure(error, attempts: attempts)
        }
    }
}
