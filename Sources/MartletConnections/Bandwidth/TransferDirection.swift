/// Which way a body goes.
package enum TransferDirection: Hashable, Sendable, CaseIterable {
    /// It is sent.
    case up
    /// It is received.
    case down
}
