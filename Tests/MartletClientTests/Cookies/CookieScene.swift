import MartletURL
import FoundationEssentials
import MartletCaching
import MartletCookies
import MartletCore

/// A cookie store at a fixed time with a small list of public suffixes.
struct CookieScene {
    /// Friday, 15 January 2027 08:00:00 UTC.
    static let start = Date(timeIntervalSince1970: 1_800_000_000)

    static let suffixes = PublicSuffixList(
        """
        // ===BEGIN ICANN DOMAINS===
        com
        org
        uk
        co.uk
        *.ck
        !www.ck
        // ===END ICANN DOMAINS===
        // ===BEGIN PRIVATE DOMAINS===
        pages.example.com
        """.utf8)

    var store: CookieStore
    var now = CookieScene.start

    init(limits: CookieLimits = CookieLimits(), suffixes: any PublicSuffixes = CookieScene.suffixes) {
        store = CookieStore(limits: limits, suffixes: suffixes)
    }

    /// Stores the cookies of a response from a URL and returns the reasons of rejected fields.
    @discardableResult
    mutating func receive(_ fields: String..., from address: String = "https://www.site.org/") throws
        -> [CookieRejection.Reason]
    {
        let url = try HTTPURL(address)
        return store.receive(
            fields.map { Array($0.utf8) }, from: url, isSecure: url.scheme == .https, now: now
        ).map(\.reason)
    }

    /// Returns the Cookie field for a URL; `nil` for none.
    mutating func header(_ address: String = "https://www.site.org/") throws -> String? {
        let url = try HTTPURL(address)
        return store.header(for: url, isSecure: url.scheme == .https, now: now).map {
            String(decoding: $0, as: UTF8.self)
        }
    }

    /// Advances the time by a number of seconds.
    mutating func wait(_ seconds: Double) {
        now = now.addingTimeInterval(seconds)
    }

    /// Returns the Cookie field for a URL after responses of `address` set the cookies.
    static func sent(
        _ fields: [String], from address: String = "https://www.site.org/", to target: String? = nil
    ) throws -> String? {
        var scene = CookieScene()
        for field in fields { try scene.receive(field, from: address) }
        return try scene.header(target ?? address)
    }
}
