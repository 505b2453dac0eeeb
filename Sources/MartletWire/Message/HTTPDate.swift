/// A date in HTTP, with a precision of one second (RFC 9110 §5.6.7).
package struct HTTPDate: Sendable, Hashable, Comparable {
    /// Seconds since 1970-01-01 00:00:00 UTC; negative before.
    package let secondsSinceEpoch: Int64

    package init(secondsSinceEpoch: Int64) { self.secondsSinceEpoch = secondsSinceEpoch }

    /// Parses any of the three forms: IMF-fixdate, RFC 850, asctime. The name of the day is not compared with the date.
    /// - Parameters:
    ///   - text: The field value.
    ///   - now: The current time, for the two-digit years of RFC 850: a year that would be more than 50 years in the
    ///     future is in the century before. With `nil`, 70...99 are in the 20th century and 00...69 in the 21st.
    ///   - ignoresCase: Whether names of days and months, and `GMT`, may be in any letter case, as caches allow (RFC
    ///     9111 §4.2); elsewhere dates are case-sensitive.
    package init?(_ text: String, now: HTTPDate? = nil, ignoresCase: Bool = false) {
        guard text.utf8.count <= 64 else { return nil }
        var parser = HTTPDateParser(text, ignoresCase: ignoresCase)
        guard let seconds = parser.parse(now: now?.secondsSinceEpoch) else { return nil }
        secondsSinceEpoch = seconds
    }

    /// The date as IMF-fixdate: `Sun, 06 Nov 1994 08:49:37 GMT`. Years are clamped to 0...9999.
    package var text: String {
        let earliest = CivilDate(year: 0, month: 1, day: 1).daysSinceEpoch * 86_400
        let latest = CivilDate(year: 9999, month: 12, day: 31).daysSinceEpoch * 86_400 + 86_399
        let seconds = min(max(secondsSinceEpoch, earliest), latest)
        let second = ((seconds % 86_400) + 86_400) % 86_400
        let days = (seconds - second) / 86_400
        let date = CivilDate(daysSinceEpoch: days)
        let weekday = CivilDate.weekdays[Int(((days + 4) % 7 + 7) % 7)]
        let clock = [second / 3600, second / 60 % 60, second % 60].map { $0.padded(to: 2) }
        let month = CivilDate.months[date.month - 1]
        return "\(weekday), \(date.day.padded(to: 2)) \(month) \(date.year.padded(to: 4)) "
            + clock.joined(separator: ":") + " GMT"
    }

    package static func < (left: HTTPDate, right: HTTPDate) -> Bool { left.secondsSinceEpoch < right.secondsSinceEpoch }
}

extension BinaryInteger {
    /// Returns the decimal digits of the number, after zeros up to a width.
    package func padded(to width: Int) -> String {
        let digits = String(self)
        return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
    }
}

/// A day of the Gregorian calendar, computed in years that begin with March so that leap days come last.
package struct CivilDate: Equatable, Sendable {
    static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    static let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    /// The year; 0 is the year before 1.
    package let year: Int64
    /// The month, 1...12.
    package let month: Int
    /// The day of the month, 1...31.
    package let day: Int

    /// Creates a day from its numbers, which ``isValid`` checks.
    package init(year: Int64, month: Int, day: Int) { (self.year, self.month, self.day) = (year, month, day) }

    /// Creates the day that is a number of days after 1970-01-01.
    package init(daysSinceEpoch: Int64) {
        // Days since 0000-03-01; an era is the 400 years after which the calendar repeats.
        let days = daysSinceEpoch + 719_468
        let era = (days >= 0 ? days : days - 146_096) / 146_097
        let dayOfEra = days - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let marchMonth = (5 * dayOfYear + 2) / 153
        day = Int(dayOfYear - (153 * marchMonth + 2) / 5 + 1)
        month = Int(marchMonth < 10 ? marchMonth + 3 : marchMonth - 9)
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    }

    /// The number of days since 1970-01-01; negative before.
    package var daysSinceEpoch: Int64 {
        let marchYear = month <= 2 ? year - 1 : year
        let era = (marchYear >= 0 ? marchYear : marchYear - 399) / 400
        let yearOfEra = marchYear - era * 400
        let marchMonth = Int64(month > 2 ? month - 3 : month + 9)
        let dayOfYear = (153 * marchMonth + 2) / 5 + Int64(day) - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }

    package var isValid: Bool {
        guard (1...12).contains(month) else { return false }
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        let lengths = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        return day >= 1 && day <= lengths[month - 1]
    }
}

/// A parser of the three forms of dates of RFC 9110 §5.6.7. Additional blanks are errors.
private struct HTTPDateParser {
    let bytes: [UInt8]
    let ignoresCase: Bool
    private var position = 0

    init(_ text: String, ignoresCase: Bool) {
        bytes = Array(text.utf8)
        self.ignoresCase = ignoresCase
    }

    /// Seconds since the epoch; `nil` if the text has another form.
    mutating func parse(now: Int64?) -> Int64? {
        guard let weekday = letters(), weekday.count >= 3, isWeekday(weekday) else { return nil }
        let seconds: Int64?
        if take(", ") {
            seconds = weekday.count == 3 ? imfDate() : rfc850Date(now: now)
        } else {
            seconds = weekday.count == 3 && take(" ") ? asctimeDate() : nil
        }
        return position == bytes.count ? seconds : nil
    }

    /// Parses the rest of an IMF-fixdate: `06 Nov 1994 08:49:37 GMT`.
    private mutating func imfDate() -> Int64? {
        guard let day = number(2), take(" "), let month = month(), take(" "), let year = number(4), take(" "),
            let clock = clock(), take(" GMT")
        else { return nil }
        return seconds(year: Int64(year), month: month, day: day, clock: clock)
    }

    /// Parses the rest of an RFC 850 date: `06-Nov-94 08:49:37 GMT`.
    private mutating func rfc850Date(now: Int64?) -> Int64? {
        guard let day = number(2), take("-"), let month = month(), take("-"), let short = number(2), take(" "),
            let clock = clock(), take(" GMT")
        else { return nil }
        guard let now else {
            return seconds(year: Int64(short < 70 ? 2000 + short : 1900 + short), month: month, day: day, clock: clock)
        }
        // Clamped to the years 68...9892, so that a wrong clock cannot overflow the computation.
        let present = min(max(now, -60_000_000_000), 250_000_000_000)
        let days = (present >= 0 ? present : present - 86_399) / 86_400
        let presentYear = CivilDate(daysSinceEpoch: days).year
        var year = presentYear / 100 * 100 + Int64(short)
        if year > presentYear + 50 { year -= 100 } else if year <= presentYear - 50 { year += 100 }
        return seconds(year: year, month: month, day: day, clock: clock)
    }

    /// Parses the rest of an asctime date: `Nov  6 08:49:37 1994`, with the day padded.
    private mutating func asctimeDate() -> Int64? {
        guard let month = month(), take(" ") else { return nil }
        let parsedDay = take(" ") ? number(1) : number(2)
        guard let day = parsedDay, take(" "), let clock = clock(), take(" "), let year = number(4) else { return nil }
        return seconds(year: Int64(year), month: month, day: day, clock: clock)
    }

    private func seconds(year: Int64, month: Int, day: Int, clock: Int64) -> Int64? {
        let date = CivilDate(year: year, month: month, day: day)
        return date.isValid ? date.daysSinceEpoch * 86_400 + clock : nil
    }

    /// Parses `08:49:37`. A leap second counts as the second after it.
    private mutating func clock() -> Int64? {
        guard let hour = number(2), take(":"), let minute = number(2), take(":"), let second = number(2), hour < 24,
            minute < 60, second <= 60
        else { return nil }
        return Int64(hour * 3600 + minute * 60 + second)
    }

    private mutating func month() -> Int? {
        guard let name = letters(), let index = CivilDate.months.firstIndex(where: { isSame(name, as: $0) }) else {
            return nil
        }
        return index + 1
    }

    private static let longWeekdays = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]

    private func isWeekday(_ name: ArraySlice<UInt8>) -> Bool {
        (name.count == 3 ? CivilDate.weekdays : HTTPDateParser.longWeekdays).contains { isSame(name, as: $0) }
    }

    private func isSame(_ part: ArraySlice<UInt8>, as text: String) -> Bool {
        // The second comparison is slow, and most names differ in the first.
        ByteClass.equalsIgnoringCase(part, text.utf8.span) && (ignoresCase || text.utf8.elementsEqual(part))
    }

    private mutating func letters() -> ArraySlice<UInt8>? {
        let start = position
        while position < bytes.count, ByteClass.lowercased(bytes[position]) &- 0x61 < 26 { position += 1 }
        return position > start ? bytes[start..<position] : nil
    }

    private mutating func number(_ digitCount: Int) -> Int? {
        guard position + digitCount <= bytes.count else { return nil }
        var value = 0
        for _ in 0..<digitCount {
            guard let digit = ByteClass.digit(bytes[position]) else { return nil }
            value = value * 10 + digit
            position += 1
        }
        return value
    }

    private mutating func take(_ text: String) -> Bool {
        let end = position + text.utf8.count
        guard end <= bytes.count, isSame(bytes[position..<end], as: text) else { return false }
        position = end
        return true
    }
}
