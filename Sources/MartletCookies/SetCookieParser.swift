package import FoundationEssentials
import MartletWire

/// A parser of the value of a `Set-Cookie` field (RFC 6265bis §5.6), as lenient as browsers, in linear time.
///
/// A field contains one cookie: a comma is part of its value.
package enum SetCookieParser {
    /// Parses the value of a field.
    /// - Throws: The reason why the field is not a cookie.
    package static func parse(_ field: ArraySlice<UInt8>) throws(CookieRejection.Reason) -> SetCookie {
        if let index = field.firstIndex(where: { !ByteClass.isFieldValue($0) }) {
            throw .controlCharacter(offset: index - field.startIndex)
        }
        let parts = field.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)
        let (name, value) = split(parts.first ?? [])
        // Without `=` the whole text is the value.
        var cookie = SetCookie(name: value == nil ? [] : Array(name), value: Array(value ?? name))
        guard cookie.name.count + cookie.value.count <= CookieTextRule.byteLimit else { throw .tooLarge }
        guard !cookie.name.isEmpty || !cookie.value.isEmpty else { throw .empty }
        for part in parts.dropFirst() { read(part, into: &cookie) }
        return cookie
    }

    /// Returns the texts before and after the first `=` (`nil` without `=`), without white space at their ends.
    private static func split(_ text: ArraySlice<UInt8>) -> (ArraySlice<UInt8>, ArraySlice<UInt8>?) {
        guard let equals = text.firstIndex(of: UInt8(ascii: "=")) else { return (ByteClass.trimmed(text), nil) }
        return (ByteClass.trimmed(text[..<equals]), ByteClass.trimmed(text[(equals + 1)...]))
    }

    /// Parses an attribute. Of repeated attributes, the last one that is not ignored is used.
    private static func read(_ text: ArraySlice<UInt8>, into cookie: inout SetCookie) {
        let (name, given) = split(text)
        let value = given ?? []
        guard name.count <= 8, value.count <= CookieTextRule.attributeLimit else { return }
        switch String(decoding: name.map(ByteClass.lowercased), as: UTF8.self) {
        case "expires": cookie.expires = CookieDate.secondsSinceEpoch(value) ?? cookie.expires
        case "max-age": cookie.maximumAge = seconds(value) ?? cookie.maximumAge
        case "domain":
            let domain = value.first == UInt8(ascii: ".") ? value.dropFirst() : value
            cookie.domain = domain.isEmpty ? nil : domain.map(ByteClass.lowercased)
        case "path": cookie.path = value.first == UInt8(ascii: "/") ? Array(value) : nil
        case "secure": cookie.isSecure = true
        case "httponly": cookie.isHTTPOnly = true
        case "samesite": cookie.sameSite = sameSite(value)
        default: return
        }
    }

    /// Parses digits with an optional minus sign, clamped to the range of the type; `nil` for other text.
    private static func seconds(_ value: ArraySlice<UInt8>) -> Int64? {
        let isNegative = value.first == UInt8(ascii: "-")
        return switch DecimalNumber(isNegative ? value.dropFirst() : value) {
        case .value(let number): isNegative ? -Int64(number) : Int64(number)
        case .overflow: isNegative ? .min : .max
        case .invalid: nil
        }
    }

    private static func sameSite(_ value: ArraySlice<UInt8>) -> Cookie.SameSite {
        switch String(decoding: value.map(ByteClass.lowercased), as: UTF8.self) {
        case "strict": .strict
        case "lax": .lax
        case "none": .none
        default: .unspecified
        }
    }
}

/// The content of a `Set-Cookie` field, before the check of whether the site may set the cookie.
package struct SetCookie: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
    /// The bytes of the name; empty without a name.
    package var name: [UInt8]
    /// The bytes of the value.
    package var value: [UInt8]
    /// `Max-Age` in seconds, clamped to the range of the type; `nil` if it is missing or invalid.
    package var maximumAge: Int64?
    /// `Expires` in seconds since 1970; `nil` if it is missing or invalid.
    package var expires: Int64?
    /// `Domain` in lower case, without its leading dot; `nil` if it is absent or empty.
    package var domain: [UInt8]?
    /// `Path` if it starts with `/`; otherwise `nil`, for the default path of the request.
    package var path: [UInt8]?
    /// Whether the field has `Secure`.
    package var isSecure = false
    /// Whether the field has `HttpOnly`.
    package var isHTTPOnly = false
    /// The value of `SameSite`; ``Cookie/SameSite/unspecified`` if it is missing or unknown.
    package var sameSite = Cookie.SameSite.unspecified

    /// The name, without the value.
    package var description: String { "\(String(decoding: name, as: UTF8.self))=***" }

    /// A mirror of the description only.
    package var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}

/// A parser of the dates in `Expires`, as in browsers (RFC 6265bis §5.1.1): parts in any order, with any separators.
package enum CookieDate {
    /// Parses a date.
    /// - Returns: Seconds since 1970-01-01 00:00:00 UTC; `nil` if a part is missing or the day does not exist.
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
        guard year >= 1601, date.isValid, time.hour <= 23, time.minute <= 59, time.second <= 59 else { return nil }
        return date.daysSinceEpoch * 86_400 + Int64(time.hour * 3600 + time.minute * 60 + time.second)
    }

    /// Returns the seconds from 1970 to a date, clamped to ±2⁵³.
    package static func seconds(of date: Date) -> Int64 { clamped(date.timeIntervalSince1970.rounded(.down)) }

    /// Returns the integer part of a number, clamped to ±2⁵³; 0 for NaN.
    static func clamped(_ number: Double) -> Int64 {
        let limit = 9_007_199_254_740_992.0
        return number.isNaN ? 0 : Int64(min(max(number, -limit), limit))
    }

    /// Returns the date of a number of seconds since 1970.
    package static func date(_ seconds: Int64) -> Date { Date(timeIntervalSince1970: Double(seconds)) }

    private static func isDelimiter(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x09, 0x20...0x2F, 0x3B...0x40, 0x5B...0x60, 0x7B...0x7E: true
        default: false
        }
    }

    /// Returns the number at the beginning of a token; `nil` if its number of digits is not in the range.
    private static func number(_ token: ArraySlice<UInt8>, digits: ClosedRange<Int>) -> Int? {
        let count = token.prefix(digits.upperBound + 1).prefix(while: ByteClass.isDigit).count
        guard digits.contains(count) else { return nil }
        return token.prefix(count).reduce(0) { $0 * 10 + Int($1 &- 0x30) }
    }

    /// Returns the time in a token: three numbers of one or two digits, separated by colons.
    private static func time(_ token: ArraySlice<UInt8>) -> (hour: Int, minute: Int, second: Int)? {
        let parts = token.split(separator: UInt8(ascii: ":"), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].allSatisfy(ByteClass.isDigit), parts[1].allSatisfy(ByteClass.isDigit),
            let hour = number(parts[0], digits: 1...2), let minute = number(parts[1], digits: 1...2),
            let second = number(parts[2], digits: 1...2)
        else { return nil }
        return (hour, minute, second)
    }

    /// Returns the month, 1 to 12, that the first three letters name.
    private static func month(_ token: ArraySlice<UInt8>) -> Int? {
        guard token.count >= 3 else { return nil }
        let letters = token.prefix(3).map(ByteClass.lowercased)
        return months.firstIndex { letters.elementsEqual($0.utf8) }.map { $0 + 1 }
    }

    private static let months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
}
