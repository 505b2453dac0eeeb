/// A token for all calls: whoever needs one while it is being fetched waits for the same fetch.
///
/// A hundred calls whose token runs out at the same moment refresh it once. A call that is cancelled stops waiting and
/// disturbs nobody: the fetch goes on for the others, and for those to come. A failure is told to all who waited for it,
/// and whoever comes after it asks anew.
public actor SingleFlightTokens: TokenProvider {
    private let provider: any TokenProvider
    /// The token in force; `nil` before the first one, and after ``invalidate()``.
    private var present: String?
    /// The fetch that runs.
    private var flight: Flight?
    private var lastFlight: UInt64 = 0

    private struct Flight {
        let number: UInt64
        let outcome: Outcome<String>
    }

    /// Tokens of a provider, none of them fetched yet.
    public init(_ provider: any TokenProvider) {
        self.provider = provider
    }

    /// The token in force; while there is none, or another is being fetched, the one that comes.
    ///
    /// - Throws: What the provider throws; `CancellationError` when the waiting task is cancelled.
    public func token() async throws -> String {
        if let flight { return try await flight.outcome.value }
        if let present { return present }
        return try await fetch { try await $0.token() }
    }

    /// A token in place of one that was refused.
    ///
    /// When the one in force is another already, the refused one was old: then that is the answer, and nothing is fetched.
    ///
    /// - Throws: What the provider throws; `CancellationError` when the waiting task is cancelled.
    public func refresh(after token: String) async throws -> String {
        while let flight {
            let fetched = try await flight.outcome.value
            // A first fetch that runs may bring the very token that was refused.
            if fetched != token { return fetched }
            // Landing clears the flight before anybody hears of its outcome; this is for one that was forgotten.
            if self.flight?.number == flight.number { break }
        }
        if let present, present != token { return present }
        return try await fetch { try await $0.refresh(after: token) }
    }

    /// Forgets the token in force, as one does whose user signed out. A fetch that runs still serves those who wait for it.
    public func invalidate() {
        present = nil
        flight = nil
    }

    private func fetch(_ ask: @escaping @Sendable (any TokenProvider) async throws -> String) async throws
        -> String
    {
        let provider = provider
        let outcome = Outcome<String>()
        lastFlight += 1
        let number = lastFlight
        flight = Flight(number: number, outcome: outcome)
        // Not a child of the caller's task: it must go on when the caller is cancelled.
        Task {
            let result: Result<String, any Error>
            do {
                result = .success(try await ask(provider))
            } catch {
                result = .failure(error)
            }
            self.land(number, result, outcome)
        }
        return try await outcome.value
    }

    private func land(_ number: UInt64, _ result: Result<String, any Error>, _ outcome: Outcome<String>) {
        // One that was forgotten while it ran is told to those who waited, and not kept.
        if flight?.number == number {
            flight = nil
            if case .success(let token) = result { present = token }
        }
        outcome.settle(result)
    }
}

extension SingleFlightTokens: CustomStringConvertible, CustomReflectable {
    /// Nothing of any token.
    public nonisolated var description: String { "SingleFlightTokens" }
    /// Shows nothing.
    public nonisolated var customMirror: Mirror { Mirror(self, children: []) }
}
