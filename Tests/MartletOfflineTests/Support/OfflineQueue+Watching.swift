import Martlet

extension OfflineQueue {
    /// The first event, of those that were or come, that is wanted.
    nonisolated func first<Value: Sendable>(_ want: (OfflineEvent) -> Value?) async throws -> Value {
        for await event in events {
            if let value = want(event) { return value }
        }
        throw CancellationError()
    }

    /// The answers to what is delivered, by tag, once so many are.
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

    /// The first dead letter.
    nonisolated func dead() async throws -> (OfflineTicket, OfflineDeadLetter) {
        try await first { if case .dead(let ticket, let letter) = $0 { (ticket, letter) } else { nil } }
    }

    /// The first uncertain request.
    nonisolated func uncertain() async throws -> (OfflineTicket, OfflineDeadLetter) {
        try await first { if case .uncertain(let ticket, let letter) = $0 { (ticket, letter) } else { nil } }
    }

    /// The first that is postponed for a reason.
    nonisolated func postponed(_ reason: OfflinePostponement.Reason) async throws -> OfflineTicket {
        try await first {
            if case .postponed(let ticket, let why) = $0, why.reason == reason { ticket } else { nil }
        }
    }
}
