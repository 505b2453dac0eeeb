import Martlet

/// A request of a transfer that another followed.
struct TransferStep: Sendable {
    /// The heads that went by for it: of one request, and of another where it had to be sent again.
    var passedHeads: [PassedHead]
    /// Why another followed, and when.
    var hop: HTTPHop
    /// What it was answered with; `nil` where it failed.
    var exchange: HTTPExchange?
}
