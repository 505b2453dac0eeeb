/// A class of defects known from other HTTP clients, with the tests that would detect it.
struct BugClass: Sendable {
    /// Evidence that a defect is absent.
    enum Proof: Hashable, Sendable {
        /// A test with this title, in any test target.
        case test(String)
        /// A row of ``HostilePeer/all`` with this name.
        case row(String)
        /// A proof that needs a feature which does not exist yet.
        case awaits(String)
    }

    /// The number, from 1 to 64.
    let number: Int
    /// A short description of the defect.
    let name: String
    /// The evidence that the defect is absent.
    let proofs: [Proof]

    init(_ number: Int, _ name: String, _ proofs: Proof...) {
        self.number = number
        self.name = name
        self.proofs = proofs
    }
}
