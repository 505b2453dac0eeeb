package import MartletConnections

/// Calls of a session, or of its views, that are under one limit of bandwidth together. It ends with its last reference.
package final class BandwidthGroup: Sendable {
    private let governor: BandwidthGovernor
    let number: UInt64

    /// A group of calls of a session.
    package init(_ session: HTTPSession, limit: BandwidthLimit) {
        governor = session.core.bandwidth
        number = governor.enter(limit)
    }

    deinit {
        governor.leave(number)
    }

    /// What limits, this one and the session's, did to the bodies received since the last look.
    package func look() -> BandwidthHold { governor.hold(transfer: number, .down) }

    /// Changes the limit; those that wait are judged anew at once.
    package func setLimit(_ limit: BandwidthLimit) {
        governor.setLimit(limit, ofTransfer: number)
    }
}
