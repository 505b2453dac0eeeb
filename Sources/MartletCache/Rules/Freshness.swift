package import MartletWire

/// The freshness of a stored response at a moment (RFC 9111 §4.2).
package struct Freshness: Equatable, Sendable {
    /// The source of the lifetime.
    package enum Basis: Equatable, Sendable {
        /// The directive `max-age`.
        case maxAge
        /// The field `Expires` minus `Date`.
        case expires
        /// A tenth of the time since `Last-Modified`, at most a day (RFC 9111 §4.2.2).
        case heuristic
        /// A ``DefaultFreshness`` rule of the caller.
        case rule
        /// No source: the lifetime is 0.
        case none
    }

    /// The maximum heuristic lifetime, in seconds: a day.
    package static let heuristicLimit: Int64 = 86_400
    /// The seconds for which the response is fresh after its origin made it, 0…2^31.
    package let lifetime: Int64
    package let basis: Basis
    /// The age in milliseconds (RFC 9111 §4.2.3).
    package let ageInMilliseconds: Int64
    /// Whether the wall clock was set back since the request: the age is unknown, and the response counts as stale.
    package let isClockSetBack: Bool

    /// Computes the freshness of a stored head.
    ///
    /// `s-maxage` gives no lifetime, since this is a private cache. The age at receipt is the larger of two values: the
    /// age that `Date` implies, and the sum of `Age` and the delay of the request. The time since the receipt is added.
    package init(of head: StoredHead, now: WallTime, defaults: DefaultFreshness = .none) {
        self.init(of: StoredVariant(head: head, bodyLength: 0), now: now, defaults: defaults)
    }

    /// Computes the freshness of a stored response whose fields have been parsed.
    init(of variant: StoredVariant, now: WallTime, defaults: DefaultFreshness) {
        let (head, dates) = (variant.head, variant.dates)
        (lifetime, basis) = Freshness.lifetime(of: variant, defaults: defaults)
        isClockSetBack = now < head.responseTime || head.responseTime < head.requestTime

        let apparent = max(0, head.responseTime.seconds.clampedDifference(dates.date))
        let delay = max(0, head.responseTime.milliseconds(since: head.requestTime))
        let corrected = (dates.age * 1000).clampedSum(delay)
        let resident = max(0, now.milliseconds(since: head.responseTime))
        ageInMilliseconds = max(apparent.secondsInMilliseconds, corrected).clampedSum(resident)
    }

    /// The age in whole seconds, 0…2^31: the value of `Age` when the response is served.
    package var age: Int64 { min(ageInMilliseconds / 1000, DeltaSeconds.limit) }

    /// The seconds for which the response is still fresh; negative for a stale one (`ttl` of RFC 9211).
    package var timeToLive: Int64 { lifetime - age }

    /// Whether it is fresh: its lifetime is longer than its age.
    package var isFresh: Bool { !isClockSetBack && lifetime * 1000 > ageInMilliseconds }

    /// The milliseconds since it became stale: 0 while it is fresh, the maximum if the clock was set back.
    package var stalenessInMilliseconds: Int64 { isClockSetBack ? .max : max(0, ageInMilliseconds - lifetime * 1000) }

    private static func lifetime(of variant: StoredVariant, defaults: DefaultFreshness) -> (Int64, Basis) {
        let (head, control, dates) = (variant.head, variant.control, variant.dates)
        // A malformed field may have contained anything: the response is stale.
        if control.isMalformed { return (0, .none) }
        if let seconds = control.maxAge { return (seconds, .maxAge) }
        switch dates.expiry {
        case .at(let moment): return (DeltaSeconds.clamped(moment.clampedDifference(dates.date)), .expires)
        case .past: return (0, .expires)
        case .none: break
        }
        guard StatusRule.heuristicallyCacheable.contains(head.status) || control.isPublic else { return (0, .none) }
        if let seconds = defaults.seconds(for: head.fields) { return (seconds, .rule) }
        guard let modified = dates.lastModified else { return (0, .none) }
        return (min(max(0, dates.date.clampedDifference(modified)) / 10, heuristicLimit), .heuristic)
    }
}

/// The dates and the age in the fields of a response (RFC 9111 §4.2, §5.1, §5.3; RFC 9110 §6.6.1, §8.8.2).
package struct MessageDates: Equatable, Sendable {
    /// The value of `Expires`.
    package enum Expiry: Equatable, Sendable {
        case none
        /// The field is not a date (`0`, `-1`) or has different values: the response is already stale (RFC 9111 §5.3).
        case past
        /// The time of expiry, in seconds since 1970.
        case at(Int64)
    }

    /// `Date`, in seconds since 1970; the time of receipt if it is missing or invalid.
    package let date: Int64
    package let expiry: Expiry
    /// `Last-Modified`, in seconds since 1970; `nil` if it is missing or invalid.
    package let lastModified: Int64?
    /// `Age` in seconds, 0…2^31: the first of several; 0 if it is missing or not a number (RFC 9111 §5.1).
    package let age: Int64

    /// Parses the fields of a response.
    /// - Parameter received: The time of receipt, by which years of two digits are interpreted.
    package init(_ fields: FieldBlock, received: WallTime) {
        date = MessageDates.single("Date", in: fields, received: received) ?? received.seconds
        lastModified = MessageDates.single("Last-Modified", in: fields, received: received)
        let expires = MessageDates.single("Expires", in: fields, received: received)
        expiry = expires.map(Expiry.at) ?? (fields.contains("Expires") ? Expiry.past : Expiry.none)
        let ages = fields.firstIndex(of: "Age").map { ElementList(fields.value(at: $0)) }
        age = ages?.first { _ in true }.flatMap(DeltaSeconds.value) ?? 0
    }

    /// Returns the date, in seconds since 1970, of a field that occurs once, or several times with the same value.
    static func single(_ name: String, in fields: FieldBlock, received: WallTime) -> Int64? {
        let values = fields.rawValues(of: name)
        guard let first = values.first, first.count <= 64, values.allSatisfy({ $0 == first }) else { return nil }
        let now = HTTPDate(secondsSinceEpoch: received.seconds)
        return HTTPDate(ByteText.string(first), now: now, ignoresCase: true)?.secondsSinceEpoch
    }
}
