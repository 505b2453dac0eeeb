package import MartletWire

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
