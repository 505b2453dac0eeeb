package import MartletConnections

/// Whether the transfers of a download could be faster, and are held to a limit of our own: then another connection brings
/// nothing, and who takes over what another one has asked for only has it drop what is on its way.
///
/// A limit lets a burst pass at first, so that one look that shows no wait tells nothing.
package struct PacingJudgement: Sendable {
    /// How many looks without a wait show that the limit does not bind.
    package static let freeLooks = 3
    /// How many looks without a request show that the transfers stand still for another reason.
    package static let idleLooks = 20

    private var isLimited = false
    private var free = 0
    private var idle = 0

    /// A judgement of transfers under no limit.
    package init() {}

    /// Whether the limit binds.
    package var isHeldBack: Bool {
        isLimited && free < PacingJudgement.freeLooks && idle < PacingJudgement.idleLooks
    }

    /// Looks once more.
    package mutating func look(_ hold: BandwidthHold) {
        isLimited = hold != .unlimited
        switch hold {
        case .unlimited, .held: (free, idle) = (0, 0)
        case .free: (free, idle) = (min(free + 1, PacingJudgement.freeLooks), 0)
        case .idle: idle = min(idle + 1, PacingJudgement.idleLooks)
        }
    }
}
