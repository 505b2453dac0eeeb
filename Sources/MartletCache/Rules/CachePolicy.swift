import MartletContent
package import MartletWire

/// The rules for messages without cache directives. The defaults are those of RFC 9111.
package struct CachePolicy: Equatable, Sendable {
    /// Lifetimes of responses that specify none; no rules by default.
    package var defaults: DefaultFreshness
    /// The seconds for which a stale response may replace an error if neither the response nor the request has the
    /// directive `stale-if-error` (RFC 5861 §4); 0…2^31. With `nil` (the default), only that directive allows it.
    package var staleIfError: Int64?

    /// Creates a policy; numbers are clamped to their ranges.
    package init(defaults: DefaultFreshness = .none, staleIfError: Int64? = nil) {
        self.defaults = defaults
        self.staleIfError = staleIfError.map(DeltaSeconds.clamped)
    }
}

/// The use that a request makes of the cache.
public enum CacheMode: String, Sendable, Hashable, CaseIterable, Codable {
    /// As in RFC 9111: a fresh stored response is served, a stale one is validated.
    case standard
    /// The response comes from the network, and is stored. A request without `Cache-Control` gets `no-cache`.
    case reload
    /// The stored response is validated even if it is fresh, unless it is also `immutable` (RFC 8246).
    case revalidate
    /// The stored response is served, whatever its age and its directives, such as `no-cache` and `must-revalidate`.
    /// Without one, or if directives of the request reject it, the network is used.
    case preferCache
    /// Like ``preferCache``, but without the network: the status is 504 if nothing suitable is stored.
    case onlyIfCached
    /// The response comes from the network; nothing is looked up or stored. A request without `Cache-Control` gets
    /// `no-store`, so that other caches store nothing either (RFC 9111 §5.2.1.5).
    case noStore
    /// The stored response is delivered immediately as a preview, even if it is stale or has `no-cache`; then the
    /// response of the network. There is one delivery if nothing is stored or the stored response is fresh, otherwise
    /// at most two. Calls that return one response use ``standard``.
    case cacheThenNetwork
    /// Like ``cacheThenNetwork``, but a fresh response is a preview too, and is validated as by ``revalidate``, unless
    /// it is `immutable` (RFC 8246). Calls that return one response use ``revalidate``.
    case cacheThenRevalidate

    /// Whether the stored response is delivered before that of the network.
    package var startsWithPreview: Bool { self == .cacheThenNetwork || self == .cacheThenRevalidate }
    /// Whether the stored response is served even if RFC 9111 requires a validation (§4.2.4, §5.2.2.4).
    package var servesUnvalidated: Bool { self == .preferCache || self == .onlyIfCached }
}

/// Lifetimes, by content type, of responses that do not specify one.
///
/// The first rule that matches replaces the estimate of RFC 9111 §4.2.2. There are no rules by default.
public struct DefaultFreshness: Equatable, Sendable {
    /// A lifetime for some content types.
    public struct Rule: Equatable, Sendable {
        /// A media range (RFC 9110 §12.5.1) in lower case: `image/png`, `image/*`, or `*/*`, which also matches responses
        /// without a valid type. An invalid range matches none.
        public let type: String
        private let range: MediaRange?
        /// The lifetime in seconds, 0…2^31.
        public let seconds: Int64

        /// Creates a rule; the seconds are clamped to their range.
        public init(type: String, seconds: Int64) {
            self.type = type.lowercased()
            range = MediaRange(type)
            self.seconds = DeltaSeconds.clamped(seconds)
        }

        fileprivate func matches(_ type: MediaType?) -> Bool {
            guard let range else { return false }
            return type.map(range.contains) ?? (range.type == "*")
        }
    }

    /// The rules; the first match is used.
    public var rules: [Rule]

    /// Creates a list of rules.
    public init(_ rules: [Rule]) { self.rules = rules }

    /// No rules: lifetimes are those of the RFC.
    public static let none = DefaultFreshness([])
    /// Ten minutes for all types.
    public static let tenMinutes = DefaultFreshness([Rule(type: "*/*", seconds: 600)])
    /// Seven days for images, ten minutes for all other types.
    public static let tenMinutesAndImagesSevenDays = DefaultFreshness([
        Rule(type: "image/*", seconds: 604_800), Rule(type: "*/*", seconds: 600),
    ])

    /// Returns the lifetime, in seconds, of a response with these fields; `nil` if no rule matches.
    package func seconds(for fields: FieldBlock) -> Int64? {
        guard !rules.isEmpty else { return nil }
        let type = fields.firstValue(of: "Content-Type").flatMap { MediaType($0) }
        return rules.first { $0.matches(type) }?.seconds
    }
}
