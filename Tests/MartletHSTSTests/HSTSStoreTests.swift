import FoundationEssentials
import Martlet
import MartletHSTS
import Synchronization
import Testing

/// A clock that tests set.
final class TestClock: Sendable {
    /// 2027-01-15 08:00:00 UTC.
    static let start = Date(timeIntervalSince1970: 1_800_000_000)
    private let time = Mutex(start)

    var now: Date { time.withLock { $0 } }

    func advance(_ seconds: Double) { time.withLock { $0.addTimeInterval(seconds) } }
}

@Suite("The HSTS store")
struct HSTSStoreTests {
    private let clock = TestClock()

    private func makeStore(limit: Int = 10_000, preloaded: [HSTSEntry] = []) -> HSTSStore {
        let clock = clock
        return HSTSStore(nil, HSTSFile.content([]), preloaded: preloaded, limit: limit) { clock.now }
    }

    private func upgrades(_ store: HSTSStore, _ url: String) throws -> Bool {
        let parsed = try HTTPURL(url)
        let result = store.upgraded(parsed)
        #expect(result == parsed || result.scheme == .https)
        return result != parsed
    }

    /// Spellings of one host. curl missed some of them, in CVE-2022-30115 (dots at the end), CVE-2022-42916 and
    /// CVE-2022-43551 (IDN with dots and letters that are mapped).
    static let spellings = [
        "xn--bcher-kva.example", "XN--BCHER-KVA.EXAMPLE", "bücher.example", "BÜCHER.example", "bu\u{308}cher.example",
        "b%C3%BCcher.example", "bücher。example", "bücher．example", "bücher｡example", "bücher.ｅｘａｍｐｌｅ",
        "xn--bcher-kva.example.", "bücher.example.", "bücher.example。", "b\u{AD}ücher.example",
    ]

    @Test("Every spelling of a host is one entry", arguments: spellings)
    func spelling(_ known: String) throws {
        let store = makeStore()
        #expect(store.store(strictTransportSecurity: "max-age=10", from: try HTTPURL("https://\(known)/")))
        #expect(store.entries.map(\.host) == ["xn--bcher-kva.example"])
        for other in HSTSStoreTests.spellings {
            #expect(try upgrades(store, "http://\(other)/"), "\(other)")
            #expect(store.isKnownHost(other))
            #expect(try HSTSEntry(host: other).host == "xn--bcher-kva.example")
        }
        #expect(store.remove(known) && store.entries.isEmpty && !store.remove(known))
    }

    @Test(
        "Names match label by label, and those above an entry only with its subdomains",
        arguments: [
            ("example.com", true, true), ("EXAMPLE.COM.", true, true), ("a.example.com", false, true),
            ("a.b.c.example.com.", false, true), ("com", false, false), ("com.", false, false),
            ("badexample.com", false, false), ("example.com.evil.test", false, false), ("example.org", false, false),
            ("xample.com", false, false), ("example.co", false, false), ("localhost", false, false),
        ])
    func matching(_ host: String, _ alone: Bool, _ withSubdomains: Bool) throws {
        for (includesSubdomains, expected) in [(false, alone), (true, withSubdomains)] {
            let entry = try HSTSEntry(host: "example.com", includesSubdomains: includesSubdomains)
            let (store, preloaded) = (makeStore(), makeStore(preloaded: [entry]))
            store.set(entry)
            for store in [store, preloaded] {
                #expect(try upgrades(store, "http://\(host)/") == expected)
                #expect(store.isKnownHost(host) == expected)
            }
        }
    }

    @Test(
        "Only the scheme changes, and port 80 becomes 443",
        arguments: [
            ("http://a.test/", "https://a.test/"), ("http://a.test:80/", "https://a.test/"),
            ("http://a.test:443/", "https://a.test/"), ("http://a.test:8080/x", "https://a.test:8080/x"),
            ("http://u:p@A.test./b/../c%20d?e=f&g#h", "https://u:p@a.test./c%20d?e=f&g#h"),
            ("https://a.test:80/", "https://a.test:80/"), ("http://b.test/", "http://b.test/"),
        ])
    func ports(_ given: String, _ expected: String) throws {
        let store = makeStore()
        store.set(try HSTSEntry(host: "a.test"))
        let url = store.upgraded(try HTTPURL(given))
        #expect(url == (try HTTPURL(expected)) && url.absoluteString == expected)
    }

    @Test(
        "An IP address has no entry, in any spelling",
        arguments: ["127.0.0.1", "127.1", "0x7f.0.0.1", "2130706433", "127.0.0.1.", "[::1]"])
    func addresses(_ host: String) throws {
        let store = makeStore(preloaded: [try HSTSEntry(host: "example", includesSubdomains: true)])
        #expect(!store.store(strictTransportSecurity: "max-age=10", from: try HTTPURL("https://\(host)/")))
        #expect(throws: HTTPURL.ParseError.self) { try HSTSEntry(host: host) }
        #expect(!store.isKnownHost(host) && store.entries.isEmpty && !store.remove(host))
        #expect(try !upgrades(store, "http://\(host)/"))
    }

    @Test(
        "A text that is not a host is rejected",
        arguments: [
            "", ".", "..", ".a.test", "a..test", "a.test/b", "a.test:80", "u@a.test", "a b", "a\n", "::1", "*.a",
        ])
    func invalidHosts(_ host: String) {
        // A wildcard is a name to the URL parser, and has no meaning.
        if host == "*.a" { return #expect((try? HSTSEntry(host: host))?.includesSubdomains == false) }
        #expect(throws: HTTPURL.ParseError.self) { try HSTSEntry(host: host) }
        #expect(!makeStore().isKnownHost(host))
    }

    @Test("An entry expires by the clock, is renewed by each field, and is removed by a max-age of 0")
    func expiry() throws {
        let (store, url) = (makeStore(), try HTTPURL("https://a.test/"))
        func receive(_ value: String) -> Bool { store.store(strictTransportSecurity: value, from: url) }
        #expect(receive("max-age=10; includeSubDomains"))
        clock.advance(9)
        #expect(store.isKnownHost("b.a.test") && store.entries.map(\.expires) == [TestClock.start + 10])
        #expect(receive("max-age=10"))
        #expect(!store.isKnownHost("b.a.test") && store.isKnownHost("a.test"))
        clock.advance(10)
        #expect(!store.isKnownHost("a.test") && store.entries.isEmpty)
        #expect(receive("max-age=10") && !receive("max-age=0; max-age=0") && store.entries.count == 1)
        #expect(receive("max-age=0; includeSubDomains") && store.entries.isEmpty)
        #expect(receive("max-age=0") && store.entries.isEmpty)
        #expect(!store.store(strictTransportSecurity: "max-age=10", from: try HTTPURL("http://a.test/")))
        #expect(store.entries.isEmpty)
        // A number beyond all dates.
        #expect(receive("max-age=\(UInt64.max)") && store.entries.map(\.expires) == [nil])
    }

    @Test("A subdomain's field does not change its parent's entry, and an expired one does not hide it")
    func parent() throws {
        // curl let the subdomain's expiry overwrite that of its parent (CVE-2024-9681).
        let store = makeStore()
        store.store(strictTransportSecurity: "max-age=1000; includeSubDomains", from: try HTTPURL("https://a.test/"))
        store.store(strictTransportSecurity: "max-age=1", from: try HTTPURL("https://b.a.test/"))
        #expect(store.entries.map(\.host) == ["a.test", "b.a.test"])
        clock.advance(10)
        #expect(store.isKnownHost("b.a.test") && store.isKnownHost("a.test"))
        store.store(strictTransportSecurity: "max-age=0", from: try HTTPURL("https://b.a.test/"))
        #expect(store.isKnownHost("b.a.test") && store.entries.map(\.expires) == [TestClock.start + 1000])
    }

    @Test("Above the limit the entry that expires first is removed")
    func limit() throws {
        let store = makeStore(limit: 3)
        for (host, seconds) in [("a", 30.0), ("b", 10), ("c", 20)] {
            store.set(try HSTSEntry(host: host, expires: TestClock.start + seconds))
        }
        store.set(try HSTSEntry(host: "d"))
        #expect(store.entries.map(\.host) == ["a", "c", "d"])
        store.set(try HSTSEntry(host: "e", expires: TestClock.start + 5))
        #expect(store.entries.map(\.host) == ["a", "c", "d"])
        store.set(try HSTSEntry(host: "c", includesSubdomains: true))
        #expect(store.entries.map(\.host) == ["a", "c", "d"])
        let none = makeStore(limit: -1)
        none.set(try HSTSEntry(host: "a"))
        #expect(none.entries.isEmpty)
    }

    @Test("Servers and functions do not change preloaded entries, which are listed nowhere")
    func preloads() throws {
        let entry = try HSTSEntry(host: "a.test", includesSubdomains: true, expires: TestClock.start + 100)
        let shorter = try HSTSEntry(host: "a.test", expires: TestClock.start + 1)
        let store = makeStore(limit: 0, preloaded: [shorter, entry, shorter])
        store.store(strictTransportSecurity: "max-age=0", from: try HTTPURL("https://a.test/"))
        #expect(!store.remove("a.test"))
        store.removeAll()
        #expect(store.isKnownHost("b.a.test") && store.entries.isEmpty)
        clock.advance(100)
        #expect(!store.isKnownHost("a.test"))
    }

    @Test("Concurrent changes and lookups lose no entry")
    func concurrency() async throws {
        let store = makeStore(limit: 1000)
        try await withThrowingTaskGroup { group in
            for number in 0..<200 {
                group.addTask {
                    let url = try HTTPURL("https://h\(number).test/")
                    store.store(strictTransportSecurity: "max-age=100", from: url)
                    if number % 2 == 0 { store.store(strictTransportSecurity: "max-age=0", from: url) }
                    #expect(store.isKnownHost("h\(number).test") == (number % 2 == 1))
                }
            }
            try await group.waitForAll()
        }
        #expect(store.entries.count == 100)
    }
}
