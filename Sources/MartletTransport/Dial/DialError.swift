/// A connection that could not be opened.
package struct DialError: Error, Sendable {
    /// The step that failed.
    package enum Phase: Sendable {
        /// Looking up the name.
        case resolving
        /// Connecting the transport.
        case connecting
        /// Loading trust roots and identities, and the TLS handshake.
        case securing
    }

    /// The step that failed.
    package var phase: Phase
    /// Why.
    package var cause: TransportError
    /// How long the dial had taken.
    package var elapsed: Duration
    /// The connection on which it failed; `nil` where there was none yet.
    package var reached: ReachedConnection?

    /// A failed dial.
    package init(
        phase: Phase, cause: TransportError, elapsed: Duration, reached: ReachedConnection? = nil
    ) {
        self.reached = reached
        self.phase = phase
        self.cause = cause
        self.elapsed = elapsed
    }
}
