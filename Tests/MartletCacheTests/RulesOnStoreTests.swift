import MartletWire
import Testing

@testable import MartletCache

@Suite("The cache rules with a store")
struct RulesOnStoreTests {
    private let scene: CacheDirectoryScene
    private let driver: CacheDriver

    init() throws {
        scene = try CacheDirectoryScene()
        driver = CacheDriver(try scene.cache())
    }

    private func response(_ text: String, status: Int = 200) -> ResponseHead { Scene.response(status, text) }

    @Test("A miss is stored, served, validated by a 304 that updates only its head, and served again")
    func life() throws {
        let first = driver.begin(Scene.request(), at: 0)
        #expect(try driver.hit(first) == nil)
        #expect(first.added?.isEmpty == true)
        let text = "Date: {0}\nCache-Control: max-age=60\nETag: \"1\"\nX-Version: 1"
        #expect(try !driver.end(first, response(text), "one", at: 0).isStored)

        let hit = try #require(try driver.hit(driver.begin(Scene.request(), at: 30)))
        #expect(hit.body == "one")
        #expect(hit.head.fields.firstValue(of: "Age") == "30")

        let stale = driver.begin(Scene.request(), at: 61)
        #expect(try driver.hit(stale) == nil)
        #expect(stale.added.map(Scene.text)?.contains("If-None-Match: \"1\"") == true)
        let news = "Date: {61}\nCache-Control: max-age=600\nETag: \"1\"\nX-Version: 2"
        let validated = try driver.end(stale, response(news, status: 304), at: 61)
        #expect(validated.isStored && validated.body == "one" && validated.head.status == 200)
        #expect(validated.head.fields.firstValue(of: "X-Version") == "2")

        let again = try #require(try driver.hit(driver.begin(Scene.request(), at: 600)))
        #expect(again.body == "one")
        #expect(again.head.fields.firstValue(of: "X-Version") == "2")
        #expect(driver.sentCount == 2)
        #expect(driver.disk.statistics.hits == 3 && driver.disk.statistics.misses == 2)
    }

    @Test("Alternating between two languages ten times sends two requests")
    func alternating() throws {
        for turn in 0..<10 {
            for language in ["en", "fr"] {
                let exchange = driver.begin(Scene.request("Accept-Language: \(language)"), at: Int64(turn))
                if let hit = try driver.hit(exchange) {
                    #expect(hit.body == "in \(language)" && turn > 0)
                    continue
                }
                let text =
                    "Date: {0}\nCache-Control: max-age=60\nVary: Accept-Language\nETag: \"\(language)\""
                _ = try driver.end(exchange, response(text), "in \(language)", at: Int64(turn))
            }
        }
        #expect(driver.sentCount == 2)
        // A request for a third language offers both entity tags, and a 304 that names one of them selects that
        // variant.
        let third = driver.begin(Scene.request("Accept-Language: de"), at: 10)
        #expect(
            third.added?.firstValue(of: "If-None-Match").map {
                $0.contains("\"en\"") && $0.contains("\"fr\"")
            } == true)
        let named = try driver.end(third, response("Date: {10}\nETag: \"fr\"", status: 304), at: 10)
        #expect(named.body == "in fr")
    }

    @Test("A response that was requested before an invalidation is delivered but not stored")
    func olderRequest() throws {
        let text = "Date: {0}\nCache-Control: max-age=60"
        _ = try driver.end(driver.begin(Scene.request(), at: 0), response(text), "old", at: 0)
        #expect(try driver.hit(driver.begin(Scene.request(), at: 1))?.body == "old")
        let inFlight = driver.begin(Scene.request("Cache-Control: no-cache"), at: 2)
        driver.changed("PUT", Scene.url, response("", status: 500))
        #expect(try driver.hit(driver.begin(Scene.request(), at: 2))?.body == "old")
        driver.changed("PUT", Scene.url, response("", status: 204))
        #expect(try driver.hit(driver.begin(Scene.request(), at: 3)) == nil)
        #expect(try driver.end(inFlight, response(text), "old", at: 3).body == "old")
        let after = driver.begin(Scene.request(), at: 4)
        #expect(try driver.hit(after) == nil)
        _ = try driver.end(after, response(text), "new", at: 4)
        #expect(try driver.hit(driver.begin(Scene.request(), at: 5))?.body == "new")
    }

    @Test("A 304 to a request from before an invalidation restores nothing")
    func olderValidation() throws {
        let text = "Date: {0}\nCache-Control: max-age=1\nETag: \"1\""
        _ = try driver.end(driver.begin(Scene.request(), at: 0), response(text), "old", at: 0)
        let inFlight = driver.begin(Scene.request(), at: 10)
        driver.changed("DELETE", Scene.url, response("", status: 204))
        let news = "Date: {10}\nCache-Control: max-age=60\nETag: \"1\""
        #expect(try driver.end(inFlight, response(news, status: 304), at: 10).body == "old")
        #expect(try driver.hit(driver.begin(Scene.request(), at: 11)) == nil)
        #expect(try scene.entryFiles.isEmpty)
    }

    @Test("A 304 that forbids storing removes only its variant")
    func forbidden() throws {
        for language in ["en", "fr"] {
            let text = "Date: {0}\nCache-Control: max-age=1\nVary: Accept-Language\nETag: \"\(language)\""
            let exchange = driver.begin(Scene.request("Accept-Language: \(language)"), at: 0)
            _ = try driver.end(exchange, response(text), "in \(language)", at: 0)
        }
        let exchange = driver.begin(Scene.request("Accept-Language: en"), at: 10)
        let news = "Date: {10}\nCache-Control: no-store\nETag: \"en\""
        #expect(try driver.end(exchange, response(news, status: 304), at: 10).body == "in en")
        let left = driver.disk.variants(of: CacheKey(url: Scene.url))
        #expect(left.map { $0.head.selections.first?.value } == ["fr"])
        #expect(try driver.disk.statistics.byteCount == scene.allocated)
    }

    @Test("Memory stores what decisions need, and its variants are selected like those on disk")
    func memory() throws {
        let memory = MemoryCache(limit: 1 << 20)
        for language in ["en", "fr"] {
            let variant = Scene.stored(
                "Date: {0}\nCache-Control: max-age=60\nVary: Accept-Language",
                selections: [.init(name: "accept-language", value: language)])
            memory.insert(MemoryEntry(head: variant.head, body: Array(language.utf8)), isOnDisk: true)
        }
        let request = Scene.request("Accept-Language: fr")
        let entries = memory.variants(of: request.key)
        let decision = CacheDecision(request, variants: entries.map(\.variant), now: Scene.at(1))
        guard case .serve(let answer) = decision else {
            Issue.record("\(decision)")
            return
        }
        memory.noteUse(of: entries[answer.variant])
        #expect(entries[answer.variant].body == Array("fr".utf8))
        memory.remove(entries[answer.variant])
        memory.noteUse(of: nil)
        #expect(memory.variants(of: request.key).map(\.body) == [Array("en".utf8)])
        #expect(memory.statistics.hits == 1 && memory.statistics.misses == 1)
        #expect(memory.statistics.entryCount == 1)
    }

    @Test("After an invalidation, memory accepts neither an older response nor an older head")
    func memoryAfterInvalidation() throws {
        let memory = MemoryCache(limit: 1 << 20)
        var invalidations = InvalidationLog()
        let epoch = invalidations.epoch
        let old = MemoryEntry(head: Scene.stored("ETag: \"1\"").head, body: [1])
        let news = Scene.stored("ETag: \"1\"\nX-Version: a longer head").head
        if invalidations.holds(epoch, for: Scene.url) { memory.insert(old, isOnDisk: true) }
        let updated = try #require(memory.updateHead(of: old, to: news, isOnDisk: true))
        #expect(updated.entry.head == news && updated.entry.body == [1] && updated.unwritten.isEmpty)
        #expect(memory.statistics.byteCount == updated.entry.cost)
        #expect(memory.updateHead(of: old, to: news, isOnDisk: true) == nil)

        invalidations.invalidate(Scene.url)
        memory.remove(news.key)
        if invalidations.holds(epoch, for: Scene.url) { memory.insert(old, isOnDisk: true) }
        #expect(memory.updateHead(of: updated.entry, to: news, isOnDisk: true) == nil)
        #expect(memory.variants(of: news.key).isEmpty && memory.statistics.byteCount == 0)
    }
}
