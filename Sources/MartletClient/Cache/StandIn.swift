/// What may take the place of an error (RFC 5861 §4): it counts, and is told of, only where it does.
struct StandIn {
    /// The answer of what is stored.
    let answer: Answer
    /// Called when it takes the error's place.
    let whenUsed: @Sendable () -> Void
}
