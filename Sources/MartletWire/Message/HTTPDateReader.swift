/// Reads the three forms of dates of RFC 9110 §5.6.7, byte by byte and with nothing tolerated between the
/// parts.
struct HTTPDateReader {
    private let bytes: [UInt8]
    private let ignoresCase: Bool
    private var position = 0

    /// - Parameter ignoresCase: Whether letters may be in any case.
    init(_ bytes: [UInt8], ignoresCase: Bool = false) {
        self.bytes = bytes
        self.ignoresCase = ignoresCase
    }

    /// Seconds since the epoch, or nil when the text is none of the forms.
    mutating func read(now: Int64?) -> Int64? {
        guard let weekday = letters(), weekday.count >= 3, isWeekday(weekday) else { return nil }
        let seconds: Int64?
        if take(", ") {
            seconds = weekday.count == 3 ? readIMF() : readRFC850(now: now)
        } else {
            seconds = weekday.count == 3 && take(" ") ? readAsctime() : nil
        }
        return position == bytes.count ? seconds : nil
    }

    /// `06 Nov 1994 08:49:37 GMT`
    private mutating func readIMF() -> Int64? {
        guard let day = number(2), take(" "), let month = month(), take(" "), let year = number(4), take(" "),
            let clock = clock(), take(" GMT")
        else { return nil }
        return seconds(year: Int64(year), month: month, day: day, clock: clock)
    }

    /// `06-Nov-94 08:49:37 GMT`
    private mutating func readRFC850(now: Int64?) -> Int64? {
        guard let day = number(2), take("-"), let month = month(), take("-"), let short = number(2),
            take(" "),
            let clock = clock(), take(" GMT")
        else { return nil }
        guard let now else {
            return seconds(
                year: Int64(short < 70 ? 2000 + short : 1900 + short), month: month, day: day, clock: clock)
        }
        // Held within the years 68...9892, so that no clock, however wrong, overflows the reckoning.
        let present = min(max(now, -60_000_000_000), 250_000_000_000)
        let days = (present >= 0 ? present : present - 86_399) / 86_400
        let presentYear = CivilDate(daysSinceEpoch: days).year
        var year = presentYear / 100 * 100 + Int64(short)
        if year > presentYear + 50 { year -= 100 } else if year <= presentYear - 50 { year += 100 }
        return seconds(year: year, month: month, day: day, clock: clock)
    }

    /// `Nov  6 08:49:37 1994`
    private mutating func readAsctime() -> Int64? {
        guard let month = month(), take(" ") else { return nil }
        let parsedDay = take(" ") ? number(1) : number(2)
        guard let day = parsedDay, take(" "), let clock = clock(), take(" "), let year = number(4) else {
            return nil
        }
        return seconds(year: Int64(year), month: month, day: day, clock: clock)
    }

    private func seconds(year: Int64, month: Int, day: Int, clock: Int64) -> Int64? {
        let date = CivilDate(year: year, month: month, day: day)
        return date.isValid ? date.daysSinceEpoch * 86_400 + clock : nil
    }

    /// `08:49:37`; a leap second counts as the second after it.
    private mutating func clock() -> Int64? {
        guard let hour = number(2), take(":"), let minute = number(2), take(":"), let second = number(2),
            hour < 24, minute < 60, second <= 60
        else { return nil }
        return Int64(hour * 3600 + minute * 60 + second)
    }

    private mutating func month() -> Int? {
        guard let name = letters(),
            let index = CivilDate.months.firstIndex(where: { isSame(name, as: $0) })
        else { return nil }
        return index + 1
    }

    private static let longWeekdays = [
        "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday",
    ]

    private func isWeekday(_ name: ArraySlice<UInt8>) -> Bool {
        (name.count == 3 ? CivilDate.weekdays : HTTPDateReader.longWeekdays)
            .contains { isSame(name, as: $0) }
    }

    private func isSame(_ part: ArraySlice<UInt8>, as text: String) -> Bool {
        ignoresCase ? ByteClass.equalsIgnoringCase(part, text.utf8.span) : text.utf8.elementsEqual(part)
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
