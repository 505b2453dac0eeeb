/// What a cache does beyond what messages ask for. The defaults are those of RFC 9111.
package struct CachePolicy: Equatable, Sendable {
    /// Lifetimes for responses that say nothing of theirs; none by default.
    package var defaults: DefaultFreshness
    /// For how many seconds after it became stale a response stands in for an error, where neither the response nor the
    /// request says (`stale-if-error`, RFC 5861 §4); 0…2^31, none by default.
    package var staleIfError: Int64?
    /// The most variants of one URL, at least 1; 8 by default.
    package var variantLimit: Int

    /// A policy; numbers out of range become the nearest in it.
    package init(defaults: DefaultFreshness = .none, staleIfError: Int64? = nil, variantLimit: Int = 8) {
        self.defaults = defaults
        self.staleIfError = staleIfError.map { min(max(0, $0), DeltaSeconds.limit) }
        self.variantLimit = max(1, variantLimit)
    }
}
