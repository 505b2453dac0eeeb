import Martlet

extension OfflineQueue {
    /// Returns the first matching event, past or future.
    nonisolated func first<Value: Sendable>(_ want: (OfflineEvent) -> Value?) async throws -> Value {
        for await event in events {
            if let value = want(event) { return value }
        }
        throw CancellationError()
    }

    /// Waits for a number of deliveries and returns their responses by tag.
    nonisolated func delivered(_ count: Int = 1) async throws -> [String: HTTPExchange] {
        var delivered: [String: HTTPExchange] = [:]
        var left = count
        for await event in events {
            guard case .delivered(let ticket, let answer) = event else { continue }
            delivered[ticket.tag ?? "\(ticket.id)"] = answer
            left -= 1
            if left == 0 { return delivered }
        }
        throw CancellationError()
    }

    /// Waits for the first dead letter.
    nonisolated func dead() async throws -> (OfflineTicket, OfflineDeadLetter) {
        try await first { if case .dead(let ticket, let letter) = $0 { (ticket, letter) } else { nil } }
    }

    /// Waits for the first uncertain request.
    nonisolated func uncertain() async throws -> (OfflineTicket, OfflineDeadLetter) {
        try await first { if case .uncertain(let ticket, let letter) = $0 { (ticket, letter) } else { nil } }
    }

    /// Waits for the first request that is postponed for the given reason.
    nonisolated func postponed(_ reason: OfflinePostponement.Reason) async throws -> OfflineTicket {
        try await first {
            if case .postponed(let ticket, let why) = $0, why.reason == reason { ticket } else { nil }
        }
    }
}
