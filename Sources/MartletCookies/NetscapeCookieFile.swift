import MartletURL
package import FoundationEssentials
import MartletWire

/// The cookie file of Netscape, which curl, wget and Python read and write: seven fields in a line, separated by tabs.
///
/// The fields are the domain, whether names below it are included, the path, whether the cookie needs TLS, the expiry
/// in seconds since 1970 (0 for a session cookie), the name, and the value. `#HttpOnly_` before the domain marks
/// cookies that scripts may not read; other lines that start with `#` are comments.
package enum NetscapeCookieFile {
    private static let title = Array("# Netscape HTTP Cookie File\n# Written by Martlet.\n\n".utf8)
    private static let mark = Array("#HttpOnly_".utf8)

    /// Returns the text of a file with cookies, without those whose name, value or path contains a tab: such a line
    /// would be parsed as another cookie, possibly one that its sender was not allowed to set.
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
        [cookie.nameBytes, cookie.valueBytes, Array(cookie.path.utf8)].joined().allSatisfy { $0 >= 0x20 }
    }

    /// Parses the text of a file.
    /// - Parameter now: The time of creation of the cookies, which the file does not contain.
    package static func cookies(_ text: [UInt8], now: Date) -> CookieFile.Content {
        let isComment = { (line: ArraySlice<UInt8>) in
            let text = line.last == ByteClass.carriageReturn ? line.dropLast() : line
            return text.first == UInt8(ascii: "#") && !text.starts(with: mark) || ByteClass.trimmed(text).isEmpty
        }
        return CookieFile.Content(text, isComment: isComment) { cookie($0, now: now) }
    }

    private static func cookie(_ whole: ArraySlice<UInt8>, now: Date) -> Cookie? {
        var line = whole.last == ByteClass.carriageReturn ? whole.dropLast() : whole
        let isHTTPOnly = line.starts(with: mark)
        if isHTTPOnly { line = line.dropFirst(mark.count) }
        var fields = line.split(separator: ByteClass.tab, maxSplits: 6, omittingEmptySubsequences: false)
        // Some writers omit the path, and some an empty value with its tab.
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
            path: String(decoding: fields[2], as: UTF8.self), expires: seconds == 0 ? nil : CookieDate.date(seconds),
            isSecure: isSecure, isHTTPOnly: isHTTPOnly, sameSite: .unspecified, created: now, lastUsed: now)
    }

    private static func flag(_ isSet: Bool) -> [UInt8] { Array((isSet ? "TRUE" : "FALSE").utf8) }

    private static func bool(_ field: ArraySlice<UInt8>) -> Bool? {
        // The letter case is ignored, as in curl.
        switch String(decoding: field.prefix(6), as: UTF8.self).uppercased() {
        case "TRUE": true
        case "FALSE": false
        default: nil
        }
    }
}

/// A cookie as a line of a jar's file: fields separated by tabs, followed by a checksum.
///
/// Each line has its own checksum, so that damage affects only one cookie.
enum CookieRecord {
    /// The first field of each line, the version of the format.
    private static let version = Array("1".utf8)
    private static let fieldCount = 12

    /// Returns the line of a cookie, without a line feed.
    static func line(_ cookie: Cookie) -> [UInt8] {
        let fields: [[UInt8]] = [
            version, Array(cookie.domain.utf8), flag(cookie.isHostOnly), Array(cookie.path.utf8), flag(cookie.isSecure),
            flag(cookie.isHTTPOnly), Array(cookie.sameSite.rawValue.utf8), milliseconds(cookie.created),
            milliseconds(cookie.lastUsed), cookie.expires.map(milliseconds) ?? [], cookie.nameBytes, cookie.valueBytes,
        ]
        let line = Array(fields.map(escaped).joined(separator: [ByteClass.tab]))
        return line + [ByteClass.tab] + Array(String(checksum(line[...]), radix: 16).utf8)
    }

    /// Returns the cookie of a line; `nil` if the line is damaged or the cookie is invalid.
    static func cookie(_ line: ArraySlice<UInt8>) -> Cookie? {
        guard let tab = line.lastIndex(of: ByteClass.tab),
            UInt64(text(line[(tab + 1)...]), radix: 16) == checksum(line[..<tab])
        else { return nil }
        let fields = line[..<tab].split(separator: ByteClass.tab, omittingEmptySubsequences: false).map(unescaped)
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

    private static func text(_ bytes: some Collection<UInt8>) -> String { String(decoding: bytes, as: UTF8.self) }
    private static func flag(_ isSet: Bool) -> [UInt8] { [UInt8(ascii: isSet ? "1" : "0")] }

    private static func milliseconds(_ date: Date) -> [UInt8] {
        Array(String(CookieDate.clamped((date.timeIntervalSince1970 * 1000).rounded())).utf8)
    }

    private static func date(_ bytes: [UInt8]) -> Date? {
        Int64(text(bytes)).map { Date(timeIntervalSince1970: Double($0) / 1000) }
    }

    /// Percent-encodes `%` and control characters, such as tabs and line feeds.
    private static func escaped(_ field: [UInt8]) -> [UInt8] {
        field.reduce(into: []) { bytes, byte in
            if byte < 0x20 || byte == 0x7F || byte == UInt8(ascii: "%") {
                PercentEncoding.append(escaped: byte, to: &bytes)
            } else {
                bytes.append(byte)
            }
        }
    }

    private static func unescaped(_ field: ArraySlice<UInt8>) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = field
        while let byte = rest.first {
            let escaped = byte == UInt8(ascii: "%") ? PercentEncoding.value(ofHexAt: rest.startIndex, in: rest) : nil
            bytes.append(escaped ?? byte)
            rest = rest.dropFirst(escaped == nil ? 1 : 3)
        }
        return bytes
    }

    /// Returns the 64-bit FNV-1a hash: any change of a single byte changes the hash.
    private static func checksum(_ bytes: ArraySlice<UInt8>) -> UInt64 {
        bytes.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01B3 }
    }
}
