package import MartletWire

/// How fresh a stored response is at a moment (RFC 9111 §4.2).
package struct Freshness: Equatable, Sendable {
    /// What its lifetime was taken from.
    package enum Basis: Equatable, Sendable {
        /// `max-age`.
        case maxAge
        /// `Expires`, less `Date`.
        case expires
        /// A tenth of the time since `Last-Modified`, at most a day (RFC 9111 §4.2.2).
        case heuristic
        /// A rule of the caller's, ``DefaultFreshness``.
        case rule
        /// Nothing: it has none.
        case none
    }

    /// The longest lifetime that is guessed, in seconds: a day.
    package static let heuristicLimit: Int64 = 86_400

    /// For how many seconds the response is fresh from when its origin made it, 0…2^31.
    package let lifetime: Int64
    /// What the lifetime was taken from.
    package let basis: Basis
    /// How old it is, in milliseconds (RFC 9111 §4.2.3).
    package let ageInMilliseconds: Int64
    /// Whether the wall clock was set back since the response came, or while it came. Its age is unknown then, and it
    /// counts as stale, however long its lifetime.
    package let isClockSetBack: Bool

    /// The freshness of a stored response.
    ///
    /// `s-maxage` gives no lifetime, since this is a private cache. The age is the larger of what the response's own
    /// `Date` tells and what `Age` and the delay of its request tell, and the time since it came.
    ///
    /// - Parameters:
    ///   - head: the stored response.
    ///   - now: the present.
    ///   - defaults: lifetimes for responses that say nothing of it.
    package init(of head: StoredHead, now: WallTime, defaults: DefaultFreshness = .none) {
        self.init(of: head, facts: HeadFacts(head), now: now, defaults: defaults)
    }

    /// The freshness of a stored response whose fields have been read.
    init(of variant: StoredVariant, now: WallTime, defaults: DefaultFreshness) {
        self.init(of: variant.head, facts: variant.facts, now: now, defaults: defaults)
    }

    private init(of head: StoredHead, facts: HeadFacts, now: WallTime, defaults: DefaultFreshness) {
        let dates = facts.dates
        (lifetime, basis) = Freshness.lifetime(
            of: head, control: facts.control, dates: dates, defaults: defaults)
        isClockSetBack = now < head.responseTime || head.responseTime < head.requestTime

        let apparent = max(0, Freshness.difference(head.responseTime.seconds, dates.date))
        let delay = max(0, head.responseTime.milliseconds(since: head.requestTime))
        let corrected = Freshness.sum(dates.age * 1000, delay)
        let resident = max(0, now.milliseconds(since: head.responseTime))
        ageInMilliseconds = Freshness.sum(max(Freshness.milliseconds(apparent), corrected), resident)
    }

    /// How old it is, in whole seconds, 0…2^31: what `Age` says when it is served.
    package var age: Int64 { min(ageInMilliseconds / 1000, DeltaSeconds.limit) }

    /// For how many more seconds it is fresh; negative for how long it has been stale (`ttl` of RFC 9211).
    package var timeToLive: Int64 { lifetime - age }

    /// Whether it is fresh: its lifetime is longer than its age.
    package var isFresh: Bool { !isClockSetBack && lifetime * 1000 > ageInMilliseconds }

    /// For how many milliseconds it has been stale: 0 while it is fresh, and without end when the clock was set back.
    package var stalenessInMilliseconds: Int64 {
        isClockSetBack ? .max : max(0, ageInMilliseconds - lifetime * 1000)
    }

    private static func lifetime(
        of head: StoredHead, control: CacheControl, dates: MessageDates, defaults: DefaultFreshness
    ) -> (Int64, Basis) {
        // A field that cannot be read may have held anything: what is doubtful is stale.
        if control.isMalformed { return (0, .none) }
        if let seconds = control.maxAge { return (seconds, .maxAge) }
        switch dates.expiry {
        case .at(let moment):
            return (min(max(0, difference(moment, dates.date)), DeltaSeconds.limit), .expires)
        case .past: return (0, .expires)
        case .none: break
        }
        guard StatusRule.isHeuristicallyCacheable(head.status) || control.isPublic else { return (0, .none) }
        if let seconds = defaults.seconds(for: head.fields) { return (seconds, .rule) }
        guard let modified = dates.lastModified else { return (0, .none) }
        return (min(max(0, difference(dates.date, modified)) / 10, heuristicLimit), .heuristic)
    }

    // Dates and clocks can be anything: sums stop at the largest number instead of trapping.

    private static func difference(_ left: Int64, _ right: Int64) -> Int64 {
        let (difference, overflows) = left.subtractingReportingOverflow(right)
        return overflows ? (left < right ? .min : .max) : difference
    }

    private static func sum(_ left: Int64, _ right: Int64) -> Int64 {
        let (sum, overflows) = left.addingReportingOverflow(right)
        return overflows ? .max : sum
    }

    private static func milliseconds(_ seconds: Int64) -> Int64 {
        let (product, overflows) = seconds.multipliedReportingOverflow(by: 1000)
        return overflows ? .max : product
    }
}

/// The dates and the age that a response tells of itself (RFC 9111 §4.2, §5.1, §5.3; RFC 9110 §6.6.1, §8.8.2).
package struct MessageDates: Equatable, Sendable {
    /// `Expires`.
    package enum Expiry: Equatable, Sendable {
        /// No such field.
        case none
        /// A field that is no date (`0`, `-1`), or several that differ: expired already (RFC 9111 §5.3).
        case past
        /// The moment it expires, in seconds since 1970.
        case at(Int64)
    }

    /// `Date`, in seconds since 1970; the moment it was received where it has none, or none that can be read.
    package let date: Int64
    /// Whether the message had a `Date` that can be read.
    package let hasDate: Bool
    /// `Expires`.
    package let expiry: Expiry
    /// `Last-Modified`, in seconds since 1970; nil where it has none, or none that can be read.
    package let lastModified: Int64?
    /// `Age` in seconds, 0…2^31: of several the first; 0 where it has none, or one that is no number (RFC 9111 §5.1).
    package let age: Int64

    /// Reads the fields of a response.
    ///
    /// - Parameters:
    ///   - fields: its fields.
    ///   - received: when it came. Years of two digits are reckoned from it.
    package init(_ fields: FieldBlock, received: WallTime) {
        let now = HTTPDate(secondsSinceEpoch: received.seconds)
        let date = MessageDates.single("Date", in: fields, now: now)
        hasDate = date != nil
        self.date = date ?? received.seconds
        lastModified = MessageDates.single("Last-Modified", in: fields, now: now)
        if !fields.contains("Expires") {
            expiry = .none
        } else {
            expiry = MessageDates.single("Expires", in: fields, now: now).map(Expiry.at) ?? .past
        }
        age = MessageDates.age(fields)
    }

    /// The date of a field that is there once, or several times with the same value.
    static func single(_ name: String, in fields: FieldBlock, now: HTTPDate) -> Int64? {
        let values = fields.rawValues(of: name)
        guard let first = values.first, first.count <= 64, values.dropFirst().allSatisfy({ $0 == first })
        else { return nil }
        return HTTPDate(ByteText.string(first), now: now, ignoresCase: true)?.secondsSinceEpoch
    }

    private static func age(_ fields: FieldBlock) -> Int64 {
        guard let index = fields.firstIndex(of: "Age") else { return 0 }
        var list = ElementList(fields.value(at: index))
        return list.next().flatMap(DeltaSeconds.value) ?? 0
    }
}

/// What the fields of a stored response say, read once: whoever keeps stored responses in memory keeps this with them.
package struct HeadFacts: Equatable, Sendable {
    /// Its directives.
    package let control: CacheControl
    /// Its dates and age.
    package let dates: MessageDates
    /// Its entity tag.
    package let entityTag: EntityTag?
    /// The codings that its body is stored in, by their names in lower case; most have none.
    let codings: [String]

    /// Reads a stored head.
    package init(_ head: StoredHead) {
        control = CacheControl(response: head.fields)
        dates = MessageDates(head.fields, received: head.responseTime)
        entityTag = EntityTag(of: head.fields)
        codings = CodingRule.codings(of: head.fields)
    }
}
