import MartletCache
import MartletTesting
import MartletTestSupport
import MartletWire
import Testing

@Suite("Parsing of Cache-Control")
struct CacheControlTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let text: String
        let holds: @Sendable (CacheControl) -> Bool
        var testDescription: String { text.debugDescription }

        init(_ text: String, _ holds: @escaping @Sendable (CacheControl) -> Bool) {
            self.text = text
            self.holds = holds
        }
    }

    static let responses: [Row] = [
        Row("Cache-Control: max-age=100") { $0.maxAge == 100 },
        Row("Cache-Control: MAX-AGE=100") { $0.maxAge == 100 },
        Row("cache-control:max-age=0") { $0.maxAge == 0 },
        Row("Cache-Control: max-age=0100") { $0.maxAge == 100 },
        Row("Cache-Control: max-age=\"100\"") { $0.maxAge == 100 },
        Row("Cache-Control: max-age='100'") { $0.maxAge == 0 },
        Row("Cache-Control: max-age=-100") { $0.maxAge == 0 },
        Row("Cache-Control: max-age=+100") { $0.maxAge == 0 },
        Row("Cache-Control: max-age=100.5") { $0.maxAge == 0 },
        Row("Cache-Control: max-age=1e3") { $0.maxAge == 0 },
        Row("Cache-Control: max-age=a100") { $0.maxAge == 0 },
        Row("Cache-Control: max-age=100a") { $0.maxAge == 0 },
        Row("Cache-Control: max-age=") { $0.maxAge == 0 },
        Row("Cache-Control: max-age") { $0.maxAge == 0 },
        Row("Cache-Control: max-age =100") { $0.maxAge == 0 },
        Row("Cache-Control: max-age= 100") { $0.maxAge == 0 },
        Row("Cache-Control: max-age=2147483647") { $0.maxAge == 2_147_483_647 },
        Row("Cache-Control: max-age=2147483648") { $0.maxAge == 1 << 31 },
        Row("Cache-Control: max-age=2147483649") { $0.maxAge == 1 << 31 },
        Row("Cache-Control: max-age=99999999999999999999999999") { $0.maxAge == 1 << 31 },
        Row("Cache-Control: max-age=100, max-age=50") { $0.maxAge == 50 },
        Row("Cache-Control: max-age=50\nCache-Control: max-age=100") { $0.maxAge == 50 },
        Row("Cache-Control: max-age=100, max-age=x") { $0.maxAge == 0 },
        Row("Cache-Control: extension=\"max-age=100\", max-age=1") { $0.maxAge == 1 },
        Row("Cache-Control: extension=\"a, no-store, b\"") { !$0.isNoStore && !$0.isMalformed },
        Row("Cache-Control: extension=\"a\\\", no-store\", public") { !$0.isNoStore && $0.isPublic },
        Row("Cache-Control: extension=\"a, no-store") { $0.isNoStore && $0.isMalformed },
        Row("Cache-Control: \"foo=bar, no-store") { $0.isNoStore && $0.isMalformed },
        Row("Cache-Control: s-maxage=5, max-age=9") { $0.maxAge == 9 && $0.sharedMaxAge == 5 },
        Row("Cache-Control: ,, ,max-age=7,,") { $0.maxAge == 7 },
        Row("Cache-Control:") { $0 == CacheControl() },
        Row("Cache-Control: no-storeX, xno-cache, publicly") { $0 == CacheControl() },
        Row("Cache-Control: no-store") { $0.isNoStore },
        Row("Cache-Control: No-Store") { $0.isNoStore },
        Row("Cache-Control: no-store=1") { $0.isNoStore },
        Row("Cache-Control: no-store =x") { $0.isNoStore },
        Row("Cache-Control: no-cache") { $0.isNoCache && $0.forbidsStale },
        Row("Cache-Control: no-cache=\"Set-Cookie\"") {
            !$0.isNoCache && $0.fieldsToValidate == ["set-cookie"]
        },
        Row("Cache-Control: no-cache=\"b, A\", no-cache=c") { $0.fieldsToValidate == ["a", "b", "c"] },
        Row("Cache-Control: no-cache=\"a\", no-cache") { $0.isNoCache },
        Row("Cache-Control: no-cache=\"\"") { $0.isNoCache },
        Row("Cache-Control: no-cache=\"a b\"") { $0.isNoCache },
        Row("Cache-Control: private=\"x-a\"") { $0.isPrivate == .fields(["x-a"]) },
        Row("Cache-Control: private, public") { $0.isPrivate == .response && $0.isPublic },
        Row("Cache-Control: must-revalidate") { $0.mustRevalidate && $0.forbidsStale },
        Row("Cache-Control: proxy-revalidate") { $0.proxyRevalidate && $0.forbidsStale },
        Row("Cache-Control: must-understand, no-store") { $0.mustUnderstand && $0.isNoStore },
        Row("Cache-Control: immutable=1, immutable") { $0.isImmutable },
        Row("Cache-Control: stale-while-revalidate=30, stale-if-error=60") {
            $0.staleWhileRevalidate == 30 && $0.staleIfError == 60
        },
        Row("Cache-Control: stale-while-revalidate=x, stale-if-error") {
            $0.staleWhileRevalidate == 0 && $0.staleIfError == 0
        },
        Row("Pragma: no-cache") { $0 == CacheControl() },
    ]

    @Test(
        "The directives of a response are parsed, and ambiguous ones count as the strictest", arguments: responses
    )
    func response(_ row: Row) {
        let control = CacheControl(response: Scene.fields(row.text))
        #expect(row.holds(control), "\(control)")
    }

    static let requests: [Row] = [
        Row("Pragma: no-cache") { $0.isNoCache },
        Row("Pragma: foo, No-Cache") { $0.isNoCache },
        Row("Pragma: no-cache\nCache-Control: max-age=5") { !$0.isNoCache && $0.maxAge == 5 },
        Row("Pragma: unrelated") { $0 == CacheControl() },
        Row("Cache-Control: no-cache=\"a\"") { $0.isNoCache },
        Row("Cache-Control: max-stale") { $0.maxStale == .max },
        Row("Cache-Control: max-stale=60") { $0.maxStale == 60 },
        Row("Cache-Control: max-stale, max-stale=60") { $0.maxStale == 60 },
        Row("Cache-Control: max-stale=60, max-stale") { $0.maxStale == 60 },
        Row("Cache-Control: max-stale=60, max-stale=20") { $0.maxStale == 20 },
        Row("Cache-Control: max-stale=x") { $0.maxStale == 0 },
        Row("Cache-Control: min-fresh=10, min-fresh=20") { $0.minFresh == 20 },
        Row("Cache-Control: min-fresh=x") { $0.minFresh == 1 << 31 },
        Row("Cache-Control: only-if-cached") { $0.isOnlyIfCached },
    ]

    @Test("The directives of a request are parsed", arguments: requests)
    func request(_ row: Row) {
        let control = CacheControl(request: Scene.fields(row.text))
        #expect(row.holds(control), "\(control)")
    }

    @Test(
        "Parsing a long field takes linear time",
        arguments: [",", "max-age=1,", "\"", "a=\"\\", "no-cache=\"a", "public,"])
    func longField(_ pattern: String) async {
        let bytes = Array(String(repeating: pattern, count: 240_000 / pattern.utf8.count).utf8)
        let growth = await ComplexityProbe.measure((bytes.count / 8, bytes.count)) { size in
            var block = FieldBlock()
            for name in [
                "Cache-Control", "Age", "Vary", "Connection", "Pragma", "If-None-Match", "Expires",
            ] {
                block.append(name: name.utf8, value: bytes.prefix(size))
            }
            return {
                _ = CacheControl(request: block)
                _ = CacheControl(response: block)
                _ = VaryRule(block)
                _ = MessageDates(block, received: Scene.at(0))
            }
        }
        #expect(growth.isLinear, "\(growth)")
    }
}
