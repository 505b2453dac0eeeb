import MartletURL
import MartletCore
package import FoundationEssentials
import MartletWire

/// The cookie file of Netscape, which curl, wget and Python read and write: seven fields a line, tabs between
/// them.
///
/// Domain, whether names below it count, path, whether it needs TLS, the end in seconds since 1970 or 0 for
/// that of the session, name, value. `#HttpOnly_` before the domain marks cookies that scripts may not see;
/// other lines that begin with `#` are comments.
package enum NetscapeCookieFile {
    private static let title = Array("# Netscape HTTP Cookie File\n# Written by Martlet.\n\n".utf8)
    private static let mark = Array("#HttpOnly_".utf8)

    /// The text of a file of cookies, without those that have no place in it: whose name, value or path holds a tab. Read
    /// again, it would be another cookie, and perhaps one that its sender could not set.
    package static func text(of cookies: [Cookie]) -> [UInt8] {
        cookies.lazy.filter(isWritable).reduce(into: title) { text, cookie in
            let seconds = cookie.expires.map { max(1, CookieDate.seconds(of: $0)) } ?? 0
            let fields: [[UInt8]] = [
                Array("\(cookie.isHostOnly ? "" : ".")\(cookie.domain)".utf8), flag(!cookie.isHostOnly),
                Array(cookie.path.utf8), flag(cookie.isSecure), Array(String(seconds).utf8), cookie.nameBytes,
                cookie.valueBytes,
            ]
            if cookie.isHTTPOnly { text += mark }
            text += fields.joined(separator: [ByteClass.tab])
            text.append(ByteClass.lineFeed)
        }
    }

    private static func isWritable(_ cookie: Cookie) -> Bool {
        func isPlain(_ bytes: some Sequence<UInt8>) -> Bool { bytes.allSatisfy { $0 >= 0x20 } }
        return isPlain(cookie.nameBytes) && isPlain(cookie.valueBytes) && isPlain(cookie.path.utf8)
    }

    /// The cookies of a text, and the lines that are none.
    ///
    /// - Parameter now: when the cookies count as made; a file does not say.
    package static func cookies(_ text: [UInt8], now: Date) -> (cookies: [Cookie], malformedLines: [Int]) {
        var cookies: [Cookie] = []
        var malformed: [Int] = []
        let lines = text.split(separator: ByteClass.lineFeed, omittingEmptySubsequences: false)
        for (index, whole) in lines.enumerated() {
            var line = whole.last == ByteClass.carriageReturn ? whole.dropLast() : whole
            let isHTTPOnly = line.starts(with: mark)
            if isHTTPOnly { line = line.dropFirst(mark.count) }
            let isPassedOver = line.first == UInt8(ascii: "#") || ByteClass.trimmed(line).isEmpty
            guard isHTTPOnly || !isPassedOver else { continue }
            if let cookie = cookie(line, isHTTPOnly: isHTTPOnly, now: now) {
                cookies.append(cookie)
            } else if malformed.count < CookieImportReport.malformedLimit {
                malformed.append(index + 1)
            }
        }
        return (cookies, malformed)
    }

    private static func cookie(_ line: ArraySlice<UInt8>, isHTTPOnly: Bool, now: Date) -> Cookie? {
        var fields = line.split(separator: ByteClass.tab, maxSplits: 6, omittingEmptySubsequences: false)
        // Some writers leave the path out, and some the value with its tab when it is empty.
        if fields.count > 2, bool(fields[2]) != nil { fields.insert(Array("/".utf8)[...], at: 2) }
        if fields.count == 8 {
            fields[6] = line[fields[6].startIndex...]
            fields.removeLast()
        }
        if fields.count == 6 { fields.append([]) }
        guard fields.count == 7, let includesSubdomains = bool(fields[1]), let isSecure = bool(fields[3]),
            let seconds = Int64(String(decoding: fields[4], as: UTF8.self)), seconds >= 0
        else { return nil }
        return try? Cookie(
            checking: Array(ByteClass.trimmed(fields[5])), Array(ByteClass.trimmed(fields[6])),
            domain: String(decoding: fields[0], as: UTF8.self), isHostOnly: !includesSubdomains,
            path: String(decoding: fields[2], as: UTF8.self),
            expires: seconds == 0 ? nil : CookieDate.date(seconds),
            isSecure: isSecure, isHTTPOnly: isHTTPOnly, sameSite: .unspecified, created: now, lastUsed: now)
    }

    private static func flag(_ isSet: Bool) -> [UInt8] { Array((isSet ? "TRUE" : "FALSE").utf8) }

    private static func bool(_ field: ArraySlice<UInt8>) -> Bool? {
        // In any case of letters, as curl reads it.
        switch String(decoding: field.prefix(6), as: UTF8.self).uppercased() {
        case "TRUE": true
        case "FALSE": false
        default: nil
        }
    }
}

/// A cookie as one line of a jar's file: fields with tabs between them, a checksum behind them.
///
/// Each line is checked by itself, so that a damaged one costs one cookie.
enum CookieRecord {
    /// What every line begins with; another version of the format begins otherwise.
    private static let version = Array("1".utf8)
    private static let fieldCount = 12

    /// The line of a cookie, without its end.
    static func line(_ cookie: Cookie) -> [UInt8] {
        let fields: [[UInt8]] = [
            version, Array(cookie.domain.utf8), flag(cookie.isHostOnly), Array(cookie.path.utf8),
            flag(cookie.isSecure), flag(cookie.isHTTPOnly), Array(cookie.sameSite.rawValue.utf8),
            milliseconds(cookie.created), milliseconds(cookie.lastUsed),
            cookie.expires.map(milliseconds) ?? [], cookie.nameBytes, cookie.valueBytes,
        ]
        let line = Array(fields.map(escaped).joined(separator: [ByteClass.tab]))
        return line + [ByteClass.tab] + Array(String(checksum(line[...]), radix: 16).utf8)
    }

    /// The cookie of a line; nil when the line is damaged or says what no cookie can be.
    static func cookie(_ line: ArraySlice<UInt8>) -> Cookie? {
        guard let tab = line.lastIndex(of: ByteClass.tab),
            UInt64(String(decoding: line[(tab + 1)...], as: UTF8.self), radix: 16) == checksum(line[..<tab])
        else { return nil }
        let fields = line[..<tab].split(separator: ByteClass.tab, omittingEmptySubsequences: false).map(
            unescaped)
        guard fields.count == fieldCount, fields[0] == version,
            let sameSite = Cookie.SameSite(rawValue: text(fields[6])), let created = date(fields[7]),
            let lastUsed = date(fields[8])
        else { return nil }
        let expires = date(fields[9])
        guard expires != nil || fields[9].isEmpty else { return nil }
        return try? Cookie(
            checking: fields[10], fields[11], domain: text(fields[1]), isHostOnly: fields[2] == flag(true),
            path: text(fields[3]), expires: expires, isSecure: fields[4] == flag(true),
            isHTTPOnly: fields[5] == flag(true), sameSite: sameSite, created: created, lastUsed: lastUsed)
    }

    private static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    private static func flag(_ isSet: Bool) -> [UInt8] { [UInt8(ascii: isSet ? "1" : "0")] }

    private static func milliseconds(_ date: Date) -> [UInt8] {
        let value = (date.timeIntervalSince1970 * 1000).rounded()
        let limit = 9_007_199_254_740_992.0
        let held = value == value ? min(max(value, -limit), limit) : 0
        return Array(String(Int64(held)).utf8)
    }

    private static func date(_ bytes: [UInt8]) -> Date? {
        Int64(text(bytes)).map { Date(timeIntervalSince1970: Double($0) / 1000) }
    }

    /// Tabs, ends of lines and `%` as `%` with two digits.
    private static func escaped(_ field: [UInt8]) -> [UInt8] {
        guard field.contains(where: mustEscape) else { return field }
        var bytes: [UInt8] = []
        for byte in field {
            if mustEscape(byte) {
                PercentEncoding.append(escaped: byte, to: &bytes)
            } else {
                bytes.append(byte)
            }
        }
        return bytes
    }

    private static func mustEscape(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == 0x7F || byte == UInt8(ascii: "%")
    }

    private static func unescaped(_ field: ArraySlice<UInt8>) -> [UInt8] {
        var bytes: [UInt8] = []
        var index = field.startIndex
        while index < field.endIndex {
            if field[index] == UInt8(ascii: "%"), index + 2 < field.endIndex,
                let high = ByteClass.hexDigit(field[index + 1]),
                let low = ByteClass.hexDigit(field[index + 2])
            {
                bytes.append(UInt8(high << 4 | low))
                index += 3
            } else {
                bytes.append(field[index])
                index += 1
            }
        }
        return bytes
    }

    /// FNV-1a of 64 bits: no single changed byte leaves it as it was.
    private static func checksum(_ bytes: ArraySlice<UInt8>) -> UInt64 {
        bytes.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01B3 }
    }
}
