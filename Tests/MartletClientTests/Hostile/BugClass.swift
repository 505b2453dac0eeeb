/// A kind of mistake that clients people trust have made, and what here would tell of it.
struct BugClass: Sendable {
    /// What shows that the mistake is not made.
    enum Proof: Hashable, Sendable {
        /// A test of this name, anywhere among the tests.
        case test(String)
        /// A row of ``HostilePeer/all`` with this name.
        case row(String)
        /// What can be proved only once there is such a thing.
        case awaits(String)
    }

    /// Its number.
    let number: Int
    /// What it is.
    let name: String
    /// What shows that it is not made.
    let proofs: [Proof]

    init(_ number: Int, _ name: String, _ proofs: Proof...) {
        self.number = number
        self.name = name
        self.proofs = proofs
    }
}
