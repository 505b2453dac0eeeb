/// A closure that decides about chains. Two are equal only where they are the same one: closures cannot be compared, and
/// connections made with different ones must not be exchanged.
final class TrustEvaluator: Hashable, Sendable {
    let decide: @Sendable (PresentedChain, String) async -> TrustDecision

    init(_ decide: @escaping @Sendable (PresentedChain, String) async -> TrustDecision) {
        self.decide = decide
    }

    static func == (left: TrustEvaluator, right: TrustEvaluator) -> Bool {
        left === right
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(self))
    }
}
