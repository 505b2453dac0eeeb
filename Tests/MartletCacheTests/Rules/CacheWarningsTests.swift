import MartletWire
import Testing

@testable import MartletCache

@Suite("Cache keys, Cache-Status and entity tags")
struct CacheWarningsTests {
    static let keys: [(String, String?)] = [
        ("https://example.com/a?b=c", "https://example.com/a?b=c"),
        ("HTTPS://Example.COM/A", "https://example.com/A"),
        ("https://example.com", "https://example.com/"),
        ("https://example.com?x", "https://example.com/?x"),
        ("https://example.com/#top", "https://example.com/"),
        ("https://example.com#top/x", "https://example.com/"),
        ("https://user:pass@example.com/", "https://example.com/"),
        ("https://example.com:443/", "https://example.com/"),
        ("https://example.com:0443/", "https://example.com/"),
        ("https://example.com:/", "https://example.com/"),
        ("https://example.com:80/", "https://example.com:80/"), ("https://example.com:00/", "https://example.com:0/"),
        ("http://example.com:80/", "http://example.com/"),
        ("http://[::1]:8080/x", "http://[::1]:8080/x"),
        ("http://[::1]/x", "http://[::1]/x"),
        ("https://example.com/%7e", "https://example.com/%7e"),
        ("https://example.com:x/", nil),
        ("https:///a", nil),
        ("ftp://example.com/", nil),
        ("/a", nil),
        ("", nil),
    ]

    @Test("A cache key is the normalized URL without fragment and user info", arguments: keys)
    func key(_ url: String, _ normal: String?) {
        #expect(CacheKey(of: url)?.url == normal)
        if let normal {
            #expect(CacheKey(of: normal, partition: "p") == CacheKey(url: normal, partition: "p"))
        }
    }

    static let statuses: [(CacheStatus, String)] = [
        (CacheStatus(), "martlet"),
        (CacheStatus(isHit: true, timeToLive: 376), "martlet; hit; ttl=376"),
        (CacheStatus(isHit: true, timeToLive: -5), "martlet; hit; ttl=-5"),
        (
            CacheStatus(forwarding: .uriMiss, forwardStatus: 200, isStored: true),
            "martlet; fwd=uri-miss; fwd-status=200; stored"
        ),
        (CacheStatus(forwarding: .varyMiss, isCollapsed: true), "martlet; fwd=vary-miss; collapsed"),
        (CacheStatus(timeToLive: .max), "martlet; ttl=999999999999999"),
        (CacheStatus(timeToLive: .min), "martlet; ttl=-999999999999999"),
        (CacheStatus(detail: "a\"b\\c\u{E9}\n"), "martlet; detail=\"a\\\"b\\\\c???\""),
    ]

    @Test("Cache-Status is a valid structured item, whatever its texts contain", arguments: statuses)
    func status(_ status: CacheStatus, _ text: String) {
        #expect(status.text == text)
    }

    static let tags: [(String, Bool)] = [
        ("\"a\"", true), ("W/\"a\"", true), ("\"\"", true), ("\"a,b\"", true), ("\"\u{E9}\"", true),
        ("a", false),
        ("w/\"a\"", false), ("W/a", false), ("\"", false), ("W/\"", false), ("\"a\"b\"", false),
        ("\"a b\"", false),
        ("", false), ("W/", false),
    ]

    @Test("An entity tag is parsed as in RFC 9110 and formatted unchanged", arguments: tags)
    func entityTag(_ text: String, _ isTag: Bool) {
        let tag = EntityTag(Array(text.utf8)[...])
        #expect((tag != nil) == isTag)
        if let tag { #expect(tag.bytes == Array(text.utf8)) }
    }
}
