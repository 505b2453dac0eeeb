/// What connections of a context ask of the peer's chain besides what OpenSSL was set up for.
struct VerificationRules: Sendable {
    /// Whether the chain is not looked at.
    var acceptsAny = false
    /// Whether there are roots besides the machine's.
    var hasGivenRoots = false
    var pins: PinSet?
    var evaluator: TrustEvaluator?
    var suffixes = PublicSuffixRule.singleLabel
    var revocation = RevocationPolicy.none
}
