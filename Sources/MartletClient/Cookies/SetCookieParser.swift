import MartletWire

/// Reads the value of one `Set-Cookie` field (RFC 6265bis §5.6): lenient as browsers are, in linear time.
///
/// Several cookies are several fields: a comma is part of a value.
package enum SetCookieParser {
    /// Reads a field's value.
    ///
    /// - Throws: why it is no cookie: a control character, nothing at all, or more than 4,096 bytes.
    package static func parse(_ field: ArraySlice<UInt8>) throws(CookieRefusal.Reason) -> SetCookie {
        if let index = field.firstIndex(where: { !ByteClass.isFieldValue($0) }) {
            throw .controlCharacter(offset: index - field.startIndex)
        }
        let semicolon = UInt8(ascii: ";")
        let end = field.firstIndex(of: semicolon) ?? field.endIndex
        var cookie = try pair(field[..<end])
        var start = end
        while start < field.endIndex {
            // At a semicolon.
            start += 1
            let end = field[start...].firstIndex(of: semicolon) ?? field.endIndex
            if start < end { read(field[start..<end], into: &cookie) }
            start = end
        }
        return cookie
    }

    private static func pair(_ text: ArraySlice<UInt8>) throws(CookieRefusal.Reason) -> SetCookie {
        let (name, value) = split(text)
        // Without '=' it is all value.
        let cookie =
            value.map { SetCookie(name: Array(name), value: Array($0)) }
            ?? SetCookie(name: [], value: Array(name))
        guard cookie.name.count + cookie.value.count <= CookieTextRule.byteLimit else { throw .tooLarge }
        guard !cookie.name.isEmpty || !cookie.value.isEmpty else { throw .empty }
        return cookie
    }

    /// What is before the first `=` and behind it, both without white space at their ends; nil when there is
    /// no `=`.
    private static func split(_ text: ArraySlice<UInt8>) -> (ArraySlice<UInt8>, ArraySlice<UInt8>?) {
        guard let equals = text.firstIndex(of: UInt8(ascii: "=")) else {
            return (ByteClass.trimmed(text), nil)
        }
        return (ByteClass.trimmed(text[..<equals]), ByteClass.trimmed(text[(equals + 1)...]))
    }

    /// Reads one attribute: of several of a name the last counts, those apart that are ignored.
    private static func read(_ text: ArraySlice<UInt8>, into cookie: inout SetCookie) {
        let (name, given) = split(text)
        let value = given ?? []
        guard name.count <= 8, value.count <= CookieTextRule.attributeLimit else { return }
        switch String(decoding: name.map(ByteClass.lowercased), as: UTF8.self) {
        case "expires":
            if let seconds = CookieDate.secondsSinceEpoch(value) { cookie.expires = seconds }
        case "max-age":
            if let seconds = seconds(value) { cookie.maximumAge = seconds }
        case "domain":
            let domain = value.first == UInt8(ascii: ".") ? value.dropFirst() : value
            cookie.domain = domain.isEmpty ? nil : domain.map(ByteClass.lowercased)
        case "path":
            cookie.path = value.first == UInt8(ascii: "/") ? Array(value) : nil
        case "secure":
            cookie.isSecure = true
        case "httponly":
            cookie.isHTTPOnly = true
        case "samesite":
            cookie.sameSite = sameSite(value)
        default:
            return
        }
    }

    /// Digits, perhaps behind a minus sign; a number too large for its type is the largest.
    private static func seconds(_ value: ArraySlice<UInt8>) -> Int64? {
        let isNegative = value.first == UInt8(ascii: "-")
        let digits = isNegative ? value.dropFirst() : value
        guard !digits.isEmpty, digits.allSatisfy(ByteClass.isDigit) else { return nil }
        var number: Int64 = 0
        for byte in digits {
            let (tens, isOver) = number.multipliedReportingOverflow(by: 10)
            let (sum, isAlsoOver) = tens.addingReportingOverflow(Int64(byte &- 0x30))
            guard !isOver, !isAlsoOver else { return isNegative ? .min : .max }
            number = sum
        }
        return isNegative ? -number : number
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
