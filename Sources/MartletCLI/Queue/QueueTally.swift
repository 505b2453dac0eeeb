import Martlet

/// What came of the requests of a queue in one run.
struct QueueTally: Hashable, Sendable {
    private(set) var delivered = 0
    private(set) var dead = 0
    private(set) var uncertain = 0
    private(set) var expired = 0
    /// How many files could not be read.
    private(set) var unreadable = 0

    /// Counts an event.
    mutating func note(_ event: OfflineEvent) {
        switch event {
        case .delivered: delivered += 1
        case .dead: dead += 1
        case .uncertain: uncertain += 1
        case .expired: expired += 1
        case .setAside, .leftAlone: unreadable += 1
        case .submitted, .attempt, .postponed, .dropped, .fileFailed, .drained: break
        }
    }

    /// The number of requests that are left in the queue, besides those counted here that became dead or uncertain.
    /// - Parameters:
    ///   - pending: The number of requests that wait.
    ///   - resting: The number of dead and uncertain requests in the queue, those of earlier runs included.
    func left(pending: Int, resting: Int) -> Int {
        pending + max(0, resting - dead - uncertain - expired)
    }

    /// What the program exits with: what needs somebody comes before what needs time.
    /// - Parameter left: The number of requests that are left, see ``left(pending:resting:)``.
    func status(left: Int) -> ExitStatus {
        if dead + uncertain + expired > 0 { return .refusedByStatus }
        if unreadable > 0 { return .readFailed }
        return left > 0 ? .offline : .success
    }

    /// The last line, for people.
    func text(left: Int) -> String {
        "ended: \(delivered) delivered, \(dead) dead, \(uncertain) uncertain, \(expired) expired, \(unreadable) unreadable, "
            + "\(left) left"
    }

    /// The last line, for programs.
    func json(left: Int, _ status: ExitStatus) -> String {
        JSONWriter.text(
            .object([
                ("event", .string("ended")), ("exit", .number(status.code)),
                ("delivered", .number(delivered)), ("dead", .number(dead)),
                ("uncertain", .number(uncertain)), ("expired", .number(expired)),
                ("unreadable", .number(unreadable)), ("left", .number(left)),
            ]))
    }
}
