import FoundationEssentials
import MartletWire

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
            flag(cookie.isSecure),
            flag(cookie.isHTTPOnly), Array(cookie.sameSite.rawValue.utf8), milliseconds(cookie.created),
            milliseconds(cookie.lastUsed), cookie.expires.map(milliseconds) ?? [], cookie.nameBytes,
            cookie.valueBytes,
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
            nameBytes: fields[10], valueBytes: fields[11], domain: text(fields[1]),
            isHostOnly: fields[2] == flag(true),
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
