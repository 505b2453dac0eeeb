/// What limits of our own did to a transfer, or a group of them, since it was last looked at.
package enum BandwidthHold: Hashable, Sendable {
    /// There are none.
    case unlimited
    /// Nothing was asked, and nothing waits: it stands still for other reasons.
    case idle
    /// All that was asked was granted at once.
    case free
    /// Something had to wait: it could be faster.
    case held
}
