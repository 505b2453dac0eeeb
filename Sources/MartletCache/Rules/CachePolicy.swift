package import MartletWire

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

/// How one request uses the cache.
public enum CacheMode: String, Sendable, Hashable, CaseIterable, Codable {
    /// As RFC 9111 has it: a fresh response is served, a stale one validated.
    case standard
    /// From the network, whatever is stored; the answer is stored. Caches on the way are asked by `no-cache` to do the same,
    /// unless the request has a `Cache-Control` of its own.
    case reload
    /// Validated even when fresh, except what is fresh and immutable (RFC 8246).
    case revalidate
    /// What is stored, however stale, and the network without that. `no-cache` and `must-revalidate` still forbid it.
    case preferCache
    /// As ``preferCache``, but never the network: status 504 without a stored response that may be used.
    case onlyIfCached
    /// From the network; nothing is looked up, and no trace of the answer is left. Caches on the way are asked by `no-store`
    /// to leave none either (RFC 9111 §5.2.1.5), unless the request has a `Cache-Control` of its own.
    case noStore
    /// What is stored at once, however stale and whatever it forbids, since it is a preview; then the answer of the
    /// network. Two deliveries at most, and one where nothing is stored or what is stored is fresh.
    case cacheThenNetwork
}

/// How long responses are fresh that say nothing of it themselves: rules of the caller's, by content type.
///
/// A cache may guess where a response has no lifetime of its own (RFC 9111 §4.2.2). With rules the first that fits
/// takes the place of the guess; without any, which is the default, there are none.
public struct DefaultFreshness: Equatable, Sendable {
    /// A lifetime for some content types.
    public struct Rule: Equatable, Sendable {
        /// A media type in lower case: `image/png`, `image/*`, or `*/*`, which also fits responses without a type.
        public let type: String
        /// The lifetime in seconds, 0…2^31.
        public let seconds: Int64

        /// A rule; seconds out of range become the nearest in it.
        public init(type: String, seconds: Int64) {
            self.type = type.lowercased()
            self.seconds = min(max(0, seconds), DeltaSeconds.limit)
        }

        fileprivate func fits(_ essence: String) -> Bool {
            if type == "*/*" || type == essence { return true }
            return type.hasSuffix("/*") && essence.hasPrefix(type.dropLast())
        }
    }

    /// The rules; the first that fits counts.
    public var rules: [Rule]

    /// Some rules.
    public init(_ rules: [Rule]) { self.rules = rules }

    /// No rules: nothing is fresh for longer than the RFC has it.
    public static let none = DefaultFreshness([])
    /// Ten minutes for everything.
    public static let tenMinutes = DefaultFreshness([Rule(type: "*/*", seconds: 600)])
    /// Seven days for images, ten minutes for everything else.
    public static let tenMinutesAndImagesSevenDays = DefaultFreshness([
        Rule(type: "image/*", seconds: 604_800), Rule(type: "*/*", seconds: 600),
    ])

    /// The lifetime, in seconds, of a response with these fields; nil where no rule fits.
    package func seconds(for fields: FieldBlock) -> Int64? {
        guard !rules.isEmpty else { return nil }
        let type = fields.firstValue(of: "Content-Type") ?? ""
        let essence = String(type.prefix { $0 != ";" }).split(whereSeparator: \.isWhitespace).joined()
            .lowercased()
        return rules.first { $0.fits(essence) }?.seconds
    }
}
