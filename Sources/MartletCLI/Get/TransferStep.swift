import Martlet

/// A request of a transfer that another followed.
struct TransferStep: Sendable {
    /// The heads that were sent for it: one, and another where it had to be sent again.
    var sentHeads: [[UInt8]]
    /// Why another followed, and when.
    var hop: HTTPHop
    /// What it was answered with; `nil` where it failed.
    var exchange: HTTPExchange?
}
