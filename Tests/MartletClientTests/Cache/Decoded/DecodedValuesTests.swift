import MartletConditions
import Testing

@testable import MartletCaching
@testable import MartletCore

@Suite("Table of decoded values")
struct DecodedValuesTests {
    private func key(_ path: String, _ representation: UInt64) -> DecodedValueKey {
        let request = HTTPRequest(method: .get, scheme: "http", authority: "a", path: path)
        return DecodedValueKey(
            resource: DecodedResource(request, options: RequestOptions()), representation: representation)
    }

    @Test("The least recently used values are evicted for a new value")
    func leastRecentlyUsed() {
        var values = DecodedValues<String>(limit: 30, countLimit: 10)
        for (number, name) in ["a", "b", "c"].enumerated() {
            #expect(values.keep(name, cost: 10, for: key("/\(name)", UInt64(number))).isEmpty)
        }
        #expect(values.value(of: key("/a", 0)) == "a")
        #expect(values.keep("d", cost: 15, for: key("/d", 3)) == ["b", "c"])
        #expect(values.count == 2 && values.cost == 25)
        #expect(values.value(of: key("/a", 0)) == "a")
        #expect(values.value(of: key("/b", 1)) == nil)
    }

    @Test("A value above the limit is not stored and evicts nothing")
    func tooLarge() {
        var values = DecodedValues<String>(limit: 30, countLimit: 10)
        _ = values.keep("a", cost: 10, for: key("/a", 0))
        #expect(values.keep("b", cost: 31, for: key("/b", 1)).isEmpty)
        #expect(values.keep("c", cost: .max, for: key("/c", 2)).isEmpty)
        #expect(values.count == 1 && values.cost == 10)
        #expect(values.keep("d", cost: 30, for: key("/d", 3)) == ["a"])
    }

    @Test("Negative costs count as zero, and the largest costs do not overflow")
    func extremes() {
        var values = DecodedValues<String>(limit: .max, countLimit: 3)
        _ = values.keep("a", cost: .min, for: key("/a", 0))
        #expect(values.cost == 0)
        #expect(values.keep("b", cost: .max, for: key("/b", 1)).isEmpty)
        #expect(values.keep("c", cost: .max, for: key("/c", 2)) == ["a", "b"])
        #expect(values.cost == .max && values.count == 1)
    }

    @Test("Values without cost are limited in number")
    func countLimit() {
        var values = DecodedValues<Int>(limit: 1, countLimit: 3)
        for number in 0..<10 { _ = values.keep(number, cost: 0, for: key("/\(number)", UInt64(number))) }
        #expect(values.count == 3)
        #expect(values.value(of: key("/6", 6)) == nil)
        #expect(values.value(of: key("/7", 7)) == 7)
    }

    @Test("With a limit of zero or below, nothing is stored", arguments: [(0, 5), (5, 0), (-1, 5), (5, -1)])
    func nothing(limit: Int, count: Int) {
        var values = DecodedValues<String>(limit: limit, countLimit: count)
        #expect(values.keep("a", cost: 0, for: key("/a", 0)).isEmpty)
        #expect(values.count == 0 && values.value(of: key("/a", 0)) == nil)
    }

    @Test("The end of a body removes exactly the values that were decoded from it")
    func ended() {
        var values = DecodedValues<String>(limit: 100, countLimit: 10)
        _ = values.keep("a", cost: 1, for: key("/a", 7))
        _ = values.keep("b", cost: 1, for: key("/b", 7))
        _ = values.keep("c", cost: 1, for: key("/c", 8))
        #expect(values.removeAll(of: 7).sorted() == ["a", "b"])
        #expect(values.removeAll(of: 7).isEmpty)
        #expect(values.count == 1 && values.cost == 1)
        #expect(values.value(of: key("/c", 8)) == "c")
    }

    @Test("A value with the same key replaces the existing value")
    func replaced() {
        var values = DecodedValues<String>(limit: 100, countLimit: 10)
        _ = values.keep("a", cost: 60, for: key("/a", 7))
        #expect(values.keep("b", cost: 70, for: key("/a", 7)) == ["a"])
        #expect(values.cost == 70 && values.count == 1)
    }

    @Test("A memory warning halves the limit, and a critical level empties the table")
    func pressure() {
        var values = DecodedValues<String>(limit: 40, countLimit: 10)
        for (number, name) in ["a", "b", "c", "d"].enumerated() {
            _ = values.keep(name, cost: 10, for: key("/\(name)", UInt64(number)))
        }
        #expect(values.pressureChanged(to: .warning) == ["a", "b"])
        #expect(values.keep("e", cost: 10, for: key("/e", 9)) == ["c"])
        #expect(values.pressureChanged(to: .critical).sorted() == ["d", "e"])
        #expect(values.keep("f", cost: 0, for: key("/f", 10)).isEmpty && values.count == 0)
        #expect(values.pressureChanged(to: .normal).isEmpty)
        _ = values.keep("g", cost: 40, for: key("/g", 11))
        #expect(values.cost == 40)
    }

    @Test("After twenty thousand stores and removals, counts and costs are consistent")
    func many() {
        var values = DecodedValues<Int>(limit: 5_000, countLimit: 1_000)
        var kept = 0
        var dropped = 0
        for number in 0..<20_000 {
            dropped +=
                values.keep(number, cost: number % 13, for: key("/\(number % 97)", UInt64(number))).count
            kept += 1
            if number % 7 == 0 { dropped += values.removeAll(of: UInt64(number / 2)).count }
        }
        #expect(values.count == kept - dropped && values.cost <= 5_000 && values.count <= 1_000)
        dropped += values.removeAll { _ in true }.count
        #expect(values.count == 0 && values.cost == 0 && kept == dropped)
    }
}
