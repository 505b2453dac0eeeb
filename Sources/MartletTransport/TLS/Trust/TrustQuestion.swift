/// What a custom policy is to be asked.
struct TrustQuestion: Sendable {
    let evaluator: TrustEvaluator
    let chain: PresentedChain
}
