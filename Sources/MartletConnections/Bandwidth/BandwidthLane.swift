/// Which limits a transfer is under: the one for all, its host's, and its own.
package struct BandwidthLane: Hashable, Sendable {
    /// The host, where there are limits for hosts; `nil` where they do not concern the transfer.
    package var host: String?
    /// The number of the transfer's own limit; `nil` where it has none.
    package var transfer: UInt64?

    /// A lane.
    package init(host: String? = nil, transfer: UInt64? = nil) {
        self.host = host
        self.transfer = transfer
    }
}
