import FoundationEssentials
import Martlet
import Testing

@Suite("Encodable parameters")
struct ParameterEncoderTests {
    private struct Filter: Encodable {
        enum Order: String, Encodable { case newest }
        var order = Order.newest
        var price: Double? = 1.5
        var missing: Int?
        var tags = ["swift", "linux"]
        var ids: Set<Int> = [3, 1, 2]
        var at = Date(timeIntervalSince1970: 0)
        var data = Data([1])
        var amount = Decimal(7)
        var url = URL(string: "https://a.example/x?y=1")
        var ratio: Float = 0.1
        var big = UInt64.max
        var small = Int8(-5)
        var nested = ["a": ["b": true]]
    }

    @Test("A value is encoded as the tree of its properties, and special types are kept")
    func properties() throws {
        let tree = try ParameterValue(encoding: Filter())
        #expect(
            tree == [
                "order": "newest", "price": 1.5, "tags": ["swift", "linux"], "ids": .set([1, 2, 3]),
                "at": .date(Date(timeIntervalSince1970: 0)), "data": .data(Data([1])),
                "amount": .decimal(7), "url": "https://a.example/x?y=1", "ratio": 0.1, "big": .unsigned(.max),
                "small": -5, "nested": ["a": ["b": true]],
            ])
    }

    @Test("A literal of mixed kinds takes variables of any type, and absent ones are null")
    func variables() throws {
        let text = "a b"
        let page: Int? = 2
        let absent: Int? = nil
        let start = Date(timeIntervalSince1970: 0)
        let tree: ParameterValue = try [
            "q": .value(text), "page": .value(page), "size": .value(absent), "order": .value(Filter.Order.newest),
            "after": .value(start), "tags": ["x", .value(text)], "limit": 20,
        ]
        #expect(
            tree == [
                "q": "a b", "page": 2, "size": nil, "order": "newest", "after": .date(start), "tags": ["x", "a b"],
                "limit": 20,
            ])
        #expect(
            try QueryEncoding().encoded(tree)
                == "after=1970-01-01T00%3A00%3A00Z&limit=20&order=newest&page=2&q=a%20b&tags=x&tags=a%20b")
        // Without `try`: these can always be encoded.
        let plain: ParameterValue = [
            "q": .value(text), "page": .value(page), "size": .value(absent), "all": .value(true),
        ]
        #expect(plain == ["q": "a b", "page": 2, "size": nil, "all": true])
        let error = #expect(throws: HTTPError.self) { try ParameterValue.value(Double.nan) }
        #expect(error?.code == .invalidRequest && error?.message.contains("infinite or NaN") == true)
    }

    @Test("A tree is kept unchanged, at the top and inside a dictionary")
    func trees() throws {
        let tree: ParameterValue = ["a": .set([1]), "b": nil]
        #expect(try ParameterValue(encoding: tree) == tree)
        #expect(try ParameterValue(encoding: ["x": tree]) == ["x": tree])
    }

    private class Base: Encodable {
        var name = "base"
    }

    private final class Derived: Base {
        private enum Keys: String, CodingKey { case extra, list, inner }
        override func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode(1, forKey: .extra)
            var list = container.nestedUnkeyedContainer(forKey: .list)
            try list.encodeNil()
            try list.encode("x")
            try super.encode(to: list.superEncoder())
            var deep = list.nestedContainer(keyedBy: Keys.self)
            try deep.encode(true, forKey: .extra)
            #expect(list.count == 4)
            var first = container.nestedContainer(keyedBy: Keys.self, forKey: .inner)
            try first.encode(1, forKey: .extra)
            var second = container.nestedContainer(keyedBy: Keys.self, forKey: .inner)
            try second.encode(2, forKey: .list)
            try super.encode(to: container.superEncoder())
        }
    }

    @Test("Nested containers and superclass encoders write to the correct position")
    func containers() throws {
        #expect(
            try ParameterValue(encoding: Derived()) == [
                "extra": 1, "list": [nil, "x", ["name": "base"], ["extra": true]],
                "inner": ["extra": 1, "list": 2], "super": ["name": "base"],
            ])
    }

    private final class Knot: Encodable {
        var next: Knot?
    }

    @Test("An object that contains itself is an error and does not overflow the stack")
    func cycle() throws {
        let knot = Knot()
        knot.next = knot
        defer { knot.next = nil }
        let error = #expect(throws: ParameterError.self) { try ParameterValue(encoding: knot) }
        #expect(error?.code == .tooDeep)
    }

    private struct Wrapper: Encodable {
        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(self)
        }
    }

    @Test("A value that wraps itself endlessly is an error")
    func wrapping() throws {
        let error = #expect(throws: ParameterError.self) { try ParameterValue(encoding: Wrapper()) }
        #expect(error?.code == .tooDeep)
    }

    /// The number 1 within a number of containers.
    struct Nested: Encodable {
        enum Kind: CaseIterable { case objects, arrays, wrappers, superclasses, nestedContainers }
        private enum Keys: CodingKey { case a }

        let kind: Kind
        let depth: Int

        func encode(to encoder: any Encoder) throws {
            let inner = depth > 1 ? Nested(kind: kind, depth: depth - 1) : nil
            switch kind {
            case .objects:
                var container = encoder.container(keyedBy: Keys.self)
                if let inner { try container.encode(inner, forKey: .a) } else { try container.encode(1, forKey: .a) }
            case .arrays:
                var container = encoder.unkeyedContainer()
                if let inner { try container.encode(inner) } else { try container.encode(1) }
            case .wrappers:
                var container = encoder.singleValueContainer()
                if let inner { try container.encode(inner) } else { try container.encode(1) }
            case .superclasses:
                var container = encoder.container(keyedBy: Keys.self)
                guard let inner else { return try container.encode(1, forKey: .a) }
                try inner.encode(to: container.superEncoder(forKey: .a))
            case .nestedContainers:
                var container = encoder.container(keyedBy: Keys.self)
                for _ in 1..<depth { container = container.nestedContainer(keyedBy: Keys.self, forKey: .a) }
                try container.encode(1, forKey: .a)
            }
        }
    }

    // An earlier version counted each object and each array twice, and so rejected structures 51 deep.
    @Test("Each container counts once towards the limit of 100", arguments: Nested.Kind.allCases)
    func depth(of kind: Nested.Kind) throws {
        let limit = ParameterValue.depthLimit
        let expected = (0..<limit).reduce(1 as ParameterValue) { value, _ -> ParameterValue in
            switch kind {
            case .objects, .superclasses, .nestedContainers: ["a": value]
            case .arrays: [value]
            case .wrappers: value
            }
        }
        #expect(try ParameterValue(encoding: Nested(kind: kind, depth: limit)) == expected)
        let error = #expect(throws: ParameterError.self) {
            try ParameterValue(encoding: Nested(kind: kind, depth: limit + 1))
        }
        #expect(error?.code == .tooDeep)
        #expect(error?.description.contains("nested more than 100 deep") == true)
    }

    private struct Hollow: Encodable {
        private enum Keys: CodingKey { case a }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Keys.self)
            for _ in 0..<500 { container = container.nestedContainer(keyedBy: Keys.self, forKey: .a) }
        }
    }

    @Test("Nested containers without a value are an error above the limit, too")
    func hollow() {
        let error = #expect(throws: ParameterError.self) { try ParameterValue(encoding: Hollow()) }
        #expect(error?.code == .tooDeep)
    }

    private struct Torn: Encodable {
        private enum Keys: CodingKey { case a }
        func encode(to encoder: any Encoder) throws {
            var keyed = encoder.container(keyedBy: Keys.self)
            try keyed.encode(1, forKey: .a)
            var list = encoder.unkeyedContainer()
            try list.encode(2)
        }
    }

    @Test("A value that requests two kinds of container is an error with its path")
    func conflict() throws {
        let error = #expect(throws: ParameterError.self) {
            try ParameterValue(encoding: ["outer": ["torn": Torn()]])
        }
        #expect(error?.code == .conflictingContainers)
        #expect(error?.path == "outer[torn]")
    }

    @Test("Infinity and NaN are rejected with their path")
    func numbers() throws {
        for value in [Double.nan, .infinity, -.infinity] {
            let error = #expect(throws: ParameterError.self) {
                try ParameterValue(encoding: ["a": ["b": [0, value]]])
            }
            #expect(error?.code == .notFinite)
            #expect(error?.path == "a[b][1]")
        }
        #expect(throws: ParameterError.self) { try ParameterValue(encoding: ["a": Float.infinity]) }
        #expect(throws: ParameterError.self) { try ParameterValue(encoding: ["a": Decimal.nan]) }
    }

    @Test("128-bit integers keep all their digits")
    func largeNumbers() throws {
        let tree = try ParameterValue(encoding: ["a": UInt128.max, "b": 1])
        #expect(try QueryEncoding().encoded(tree) == "a=340282366920938463463374607431768211455&b=1")
        let least = try ParameterValue(encoding: ["a": Int128.min])
        #expect(try QueryEncoding().encoded(least) == "a=-170141183460469231731687303715884105728")
    }

    private struct Empty: Encodable {}
    private struct Silent: Encodable { func encode(to encoder: any Encoder) throws {} }
    private struct Rejection: Error {}
    private struct Rejecting: Encodable { func encode(to encoder: any Encoder) throws { throw Rejection() } }

    @Test("A value that encodes nothing is an empty object, and its errors are unchanged")
    func nothing() throws {
        #expect(try ParameterValue(encoding: Empty()) == [:])
        #expect(try ParameterValue(encoding: ["a": Silent()]) == ["a": [:]])
        #expect(throws: Rejection.self) { try ParameterValue(encoding: ["a": Rejecting()]) }
    }

    @Test("Integer keys become names, and an absent top-level value is null")
    func roots() throws {
        #expect(try ParameterValue(encoding: [1: "a"]) == ["1": "a"])
        #expect(try ParameterValue(encoding: Int?.none) == nil)
        #expect(try ParameterValue(encoding: [1, 2]) == [1, 2])
    }
}
