/// What one transfer is held to: whom it asks, and as whom.
package struct TransferPace: Sendable {
    let governor: BandwidthGovernor
    let lane: BandwidthLane

    /// A pace.
    package init(_ governor: BandwidthGovernor, lane: BandwidthLane) {
        self.governor = governor
        self.lane = lane
    }

    /// Whether anything may be held back in a direction.
    package func isActive(_ direction: TransferDirection) -> Bool {
        governor.isActive(direction)
    }
}
