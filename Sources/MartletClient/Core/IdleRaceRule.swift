import MartletConnections

/// Whether a request whose kept connection turned out dead is sent again (RFC 9110 §9.2.2, RFC 9112 §9.3.1).
///
/// A server may close an idle connection in the very moment a request goes out on it. Nothing was processed then, as a
/// rule, but the client cannot know; so only what may safely happen twice is repeated, and only where not a single byte of
/// an answer came. curl and OkHttp repeat a POST as well; Go does not, and neither does this.
struct IdleRaceRule {
    /// The request's method.
    var method: HTTPRequest.Method
    /// Whether it has an `Idempotency-Key` field, or the caller allowed it.
    var isDeclaredSafe: Bool
    /// Whether its body can be sent again.
    var isReplayable: Bool

    /// Whether to send it again.
    func allowsResending(after error: ExchangeError, isReused: Bool, hasReceivedAnyByte: Bool) -> Bool {
        guard isReused, !hasReceivedAnyByte, error.isConnectionLoss else { return false }
        if !error.wasSent { return true }
        return isReplayable && (isDeclaredSafe || method.isIdempotent)
    }
}
