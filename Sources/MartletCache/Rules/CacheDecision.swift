/// What is to be done with a request, by what is stored: the one place where that is decided (RFC 9111 §4).
package enum CacheDecision: Equatable, Sendable {
    /// The stored response answers; no network.
    case serve(CachedAnswer)
    /// The stored response answers, and is validated behind it, once for all who ask meanwhile (RFC 5861 §3).
    case serveStaleWhileRevalidating(CachedAnswer, ValidationPlan)
    /// The stored response is a first delivery, and what comes of validating it the second
    /// (``CacheMode/cacheThenNetwork``).
    case serveThenValidate(CachedAnswer, ValidationPlan)
    /// The network is asked whether what is stored is still good, or plainly where there is no validator.
    case validate(ValidationPlan)
    /// The network answers.
    case forward(ForwardPlan)
    /// Nothing may answer but the cache, and it has no response that may: status 504 (RFC 9111 §5.2.1.7).
    case unsatisfiable(CacheStatus)

    /// Decides.
    ///
    /// - Parameters:
    ///   - request: what is asked, and how.
    ///   - variants: everything that is stored under its key, in any order; complete responses alone.
    ///   - now: the present.
    ///   - policy: what the cache does beyond what messages ask for.
    package init(
        _ request: CacheRequest, variants: [StoredVariant], now: WallTime, policy: CachePolicy = CachePolicy()
    ) {
        self = CacheDecider(request: request, variants: variants, now: now, policy: policy).decide()
    }
}
