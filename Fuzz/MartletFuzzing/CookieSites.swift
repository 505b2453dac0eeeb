import MartletURL
import MartletCaching
import MartletCookies
import MartletCore
import MartletHosts
import MartletWire

/// Sites that set cookies, and the checks of the stored cookies.
struct CookieSites {
    /// The current time of the test, 15 January 2027.
    static let now = CookieDate.date(1_800_000_000)

    private static let limits = CookieLimits(perResponse: 50, perDomain: 8, total: 20, headerBytes: 256)
    private static let suffixes = PublicSuffixList(
        "com\norg\nuk\nco.uk\n*.ck\n!www.ck\npages.example.com\n".utf8)
    private static let targets = [
        "http://site.org/", "https://www.site.org/x/y", "https://shop.co.uk/", "https://x.ck/",
        "https://a.www.ck/",
        "https://127.0.0.1/", "https://[::1]/", "http://localhost/", "https://site.org./", "https://com/",
        "https://me.pages.example.com/",
    ].compactMap { try? HTTPURL($0) }

    private var store = CookieStore(limits: CookieSites.limits, suffixes: CookieSites.suffixes)
    private var url: HTTPURL
    private var seconds: Int64 = 1_800_000_000

    init() {
        url = CookieSites.targets[0]
    }

    /// Processes one line: the URL of a site, or a field that it sets.
    mutating func take(_ line: [UInt8]) throws(FuzzFinding) {
        seconds += 1
        if line.first == UInt8(ascii: "@") {
            let text = String(decoding: line.dropFirst(), as: UTF8.self)
            if let parsed = try? HTTPURL(text) { url = parsed }
            return
        }
        let now = CookieDate.date(seconds)
        let before = Set(store.allCookies(at: now))
        _ = store.receive([line], from: url, isSecure: url.scheme == .https, now: now)
        let after = store.allCookies(at: now)
        try require(after.count <= CookieSites.limits.total, "\(after.count) cookies")
        for cookie in after where !before.contains(cookie) {
            try require(CookieSites.belongs(cookie, to: url), "\(url) sets \(cookie)")
            try require(!cookie.isSecure || url.scheme == .https, "\(url) sets \(cookie)")
        }
        for cookie in before where cookie.isSecure && url.scheme == .http {
            // The cookie can only have been evicted for lack of room, and never replaced.
            let other = after.contains { $0 != cookie && $0.isSame(as: cookie) }
            try require(!other, "\(url) replaces \(cookie)")
        }
        try checkHeader(for: url)
    }

    /// Checks the cookies that are sent to each of some sites, and the files of all cookies.
    mutating func checkAll() throws(FuzzFinding) {
        for target in CookieSites.targets { try checkHeader(for: target) }
        try CookieSites.checkFiles(of: store.allCookies(at: CookieDate.date(seconds)))
    }

    private mutating func checkHeader(for url: HTTPURL) throws(FuzzFinding) {
        let now = CookieDate.date(seconds)
        let isSecure = url.scheme == .https
        let cookies = store.cookies(for: url, isSecure: isSecure, now: now)
        for cookie in cookies {
            try require(CookieSites.belongs(cookie, to: url), "\(cookie) goes to \(url)")
            try require(isSecure || !cookie.isSecure, "\(cookie) goes to \(url)")
            try require(url.path.utf8.starts(with: cookie.path.utf8), "\(cookie) goes to \(url)")
        }
        guard let header = store.header(for: url, isSecure: isSecure, now: now) else {
            return
        }
        try require(!cookies.isEmpty, "a field without cookies for \(url)")
        try require(header.allSatisfy(ByteClass.isFieldValue), "a control character goes to \(url)")
        try require(header.count <= CookieSites.limits.headerBytes, "\(header.count) bytes go to \(url)")
    }

    /// Returns whether a cookie's domain is the host or a parent domain that is not a public suffix. The check is
    /// independent of the library's.
    private static func belongs(_ cookie: Cookie, to url: HTTPURL) -> Bool {
        if cookie.domain == url.host { return true }
        let isBelow = url.host.hasSuffix("." + cookie.domain)
        return isBelow && !cookie.isHostOnly && !url.isIPLiteral && !suffixes.isPublicSuffix(cookie.domain)
    }

    /// Checks that cookies survive writing and reading in both file formats.
    static func checkFiles(of cookies: [Cookie]) throws(FuzzFinding) {
        for cookie in cookies {
            let isText = (cookie.nameBytes + cookie.valueBytes).allSatisfy(ByteClass.isFieldValue)
            try require(isText && !cookie.valueBytes.contains(UInt8(ascii: ";")), "\(cookie)")
        }
        let own = CookieFile.content(CookieFile.text(of: cookies)).cookies
        try require(same(own, cookies), "a jar's file reads back otherwise")
        // A cookie with a tab cannot be stored in a format of tabs, and is omitted.
        let plain = cookies.filter { cookie in
            !(cookie.nameBytes + cookie.valueBytes + cookie.path.utf8).contains(0x09)
        }
        let netscape = NetscapeCookieFile.cookies(NetscapeCookieFile.text(of: cookies), now: now).cookies
        try require(same(netscape, plain), "a Netscape file reads back otherwise")
    }

    private static func same(_ left: [Cookie], _ right: [Cookie]) -> Bool {
        left.count == right.count
            && zip(left, right).allSatisfy { $0.isSame(as: $1) && $0.valueBytes == $1.valueBytes }
    }

    /// Checks that the suffix of a name in a parsed list is an end of that name.
    static func checkSuffixes(_ payload: [UInt8]) throws(FuzzFinding) {
        let list = PublicSuffixList(payload)
        let first = payload.prefix { $0 != 0x0A }
        for name in [String(decoding: first, as: UTF8.self), "a.b.site.co.uk", "x.ck", ""] {
            let suffix = list.publicSuffix(of: name)
            try require(
                name.utf8.suffix(suffix.utf8.count).elementsEqual(suffix.utf8), "\(suffix) of \(name)")
            guard let domain = list.registrableDomain(of: name) else { continue }
            try require(domain.utf8.count > suffix.utf8.count, "\(domain) of \(name)")
        }
    }
}
