package import FoundationEssentials
import MartletWire

/// The dates of `Expires`, read as browsers read them (RFC 6265bis §5.1.1): any order, any separators.
package enum CookieDate {
    /// Reads a date.
    ///
    /// - Returns: seconds since 1970-01-01 00:00:00 UTC; nil when a part is missing or the day does not
    ///   exist.
    package static func secondsSinceEpoch(_ text: ArraySlice<UInt8>) -> Int64? {
        var time: (hour: Int, minute: Int, second: Int)?
        var day: Int?
        var month: Int?
        var year: Int?
        for token in text.split(whereSeparator: isDelimiter) {
            if time == nil, let found = CookieDate.time(token) {
                time = found
            } else if day == nil, let found = number(token, digits: 1...2) {
                day = found
            } else if month == nil, let found = CookieDate.month(token) {
                month = found
            } else if year == nil, let found = number(token, digits: 2...4) {
                year = found
            }
        }
        guard let time, let day, let month, var year else { return nil }
        if (70...99).contains(year) { year += 1900 }
        if (0...69).contains(year) { year += 2000 }
        let date = CivilDate(year: Int64(year), month: month, day: day)
        guard year >= 1601, date.isValid, time.hour <= 23, time.minute <= 59, time.second <= 59 else {
            return nil
        }
        return date.daysSinceEpoch * 86_400 + Int64(time.hour * 3600 + time.minute * 60 + time.second)
    }

    /// The seconds since 1970 of an instant, held within ±2⁵³.
    package static func seconds(of date: Date) -> Int64 {
        let seconds = date.timeIntervalSince1970.rounded(.down)
        let limit = 9_007_199_254_740_992.0
        guard seconds == seconds else { return 0 }
        return Int64(min(max(seconds, -limit), limit))
    }

    /// The instant that many seconds after 1970.
    package static func date(_ seconds: Int64) -> Date {
        Date(timeIntervalSince1970: Double(seconds))
    }

    private static func isDelimiter(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x09, 0x20...0x2F, 0x3B...0x40, 0x5B...0x60, 0x7B...0x7E: true
        default: false
        }
    }

    /// A number of so many digits, and what is no digit behind it.
    private static func number(_ token: ArraySlice<UInt8>, digits: ClosedRange<Int>) -> Int? {
        let count = token.prefix(digits.upperBound + 1).prefix(while: ByteClass.isDigit).count
        guard digits.contains(count) else { return nil }
        return token.prefix(count).reduce(0) { $0 * 10 + Int($1 &- 0x30) }
    }

    /// Three numbers of one or two digits with colons between them.
    private static func time(_ token: ArraySlice<UInt8>) -> (hour: Int, minute: Int, second: Int)? {
        let parts = token.split(separator: UInt8(ascii: ":"), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].allSatisfy(ByteClass.isDigit),
            parts[1].allSatisfy(ByteClass.isDigit),
            let hour = number(parts[0], digits: 1...2), let minute = number(parts[1], digits: 1...2),
            let second = number(parts[2], digits: 1...2)
        else { return nil }
        return (hour, minute, second)
    }

    /// The month that the first three letters name.
    private static func month(_ token: ArraySlice<UInt8>) -> Int? {
        guard token.count >= 3 else { return nil }
        let letters = token.prefix(3).map(ByteClass.lowercased)
        let index = months.firstIndex { letters.elementsEqual($0.utf8) }
        return index.map { $0 + 1 }
    }

    private static let months = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ]
}
