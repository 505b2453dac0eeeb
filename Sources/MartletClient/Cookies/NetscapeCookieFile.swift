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
            nameBytes: Array(ByteClass.trimmed(fields[5])), valueBytes: Array(ByteClass.trimmed(fields[6])),
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
