/// An instant as HTTP writes it, to the second (RFC 9110 §5.6.7).
package struct HTTPDate: Sendable, Hashable, Comparable {
    /// Seconds since 1970-01-01 00:00:00 UTC; negative before.
    package let secondsSinceEpoch: Int64

    /// Makes the date of an instant.
    package init(secondsSinceEpoch: Int64) { self.secondsSinceEpoch = secondsSinceEpoch }

    /// Reads any of the three forms: IMF-fixdate, RFC 850, asctime. The name of the day is not compared with
    /// the date.
    ///
    /// - Parameters:
    ///   - text: the field value.
    ///   - now: the present, for the two-digit years of RFC 850: a date more than 50 years ahead of it lies a
    ///     century back. Without it 70...99 mean the 20th century and 00...69 the 21st.
    ///   - ignoresCase: whether names of days and months, and `GMT`, may be in any case, as caches should have it
    ///     (RFC 9111 §4.2); elsewhere dates are case-sensitive.
    package init?(_ text: String, now: HTTPDate? = nil, ignoresCase: Bool = false) {
        guard text.utf8.count <= 64 else { return nil }
        var reader = HTTPDateReader(Array(text.utf8), ignoresCase: ignoresCase)
        guard let seconds = reader.read(now: now?.secondsSinceEpoch) else { return nil }
        secondsSinceEpoch = seconds
    }

    /// The date as IMF-fixdate: `Sun, 06 Nov 1994 08:49:37 GMT`. Years are held within 0...9999.
    package var text: String {
        let earliest = CivilDate(year: 0, month: 1, day: 1).daysSinceEpoch * 86_400
        let latest = CivilDate(year: 9999, month: 12, day: 31).daysSinceEpoch * 86_400 + 86_399
        let seconds = min(max(secondsSinceEpoch, earliest), latest)
        let second = ((seconds % 86_400) + 86_400) % 86_400
        let days = (seconds - second) / 86_400
        let date = CivilDate(daysSinceEpoch: days)
        let weekday = CivilDate.weekdays[Int(((days + 4) % 7 + 7) % 7)]
        let clock = [second / 3600, second / 60 % 60, second % 60].map { padded($0, 2) }.joined(
            separator: ":")
        let month = CivilDate.months[date.month - 1]
        return "\(weekday), \(padded(Int64(date.day), 2)) \(month) \(padded(date.year, 4)) \(clock) GMT"
    }

    /// Whether one date is before another.
    package static func < (left: HTTPDate, right: HTTPDate) -> Bool {
        left.secondsSinceEpoch < right.secondsSinceEpoch
    }

    private func padded(_ number: Int64, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
    }
}
