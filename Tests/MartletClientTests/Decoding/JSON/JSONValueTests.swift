import FoundationEssentials
import Martlet
import Testing

@Suite("JSON trees")
struct JSONValueTests {
    @Test("A tree is written with literals and read with names and indices")
    func literals() throws {
        let value: JSONValue = [
            "title": "Sea", "tags": ["blue", "wide"], "draft": nil, "width": 3.5, "count": 2, "new": true,
        ]
        #expect(
            value.text()
                == "{\"title\":\"Sea\",\"tags\":[\"blue\",\"wide\"],\"draft\":null,\"width\":3.5,\"count\":2,\"new\":true}"
        )
        #expect(value["tags"]?[1]?.stringValue == "wide")
        #expect(value["tags"]?[2] == .none)
        #expect(value["tags"]?[-1] == .none)
        #expect(value["tags"]?["x"] == .none)
        #expect(value["none"] == .none)
        #expect(value["draft"]?.isNull == true)
        #expect(value["count"]?.intValue == 2)
        #expect(value["width"]?.doubleValue == 3.5)
        #expect(value["width"]?.intValue == .none)
        #expect(value["new"]?.boolValue == true)
        #expect(value["title"]?.intValue == .none)
        #expect(value.objectValue?.names == ["title", "tags", "draft", "width", "count", "new"])
        #expect(JSONValue(Double.nan) == .null)
        #expect("\(JSONValue(1e300))" == "1e+300")
    }

    @Test("Nulls are removed from objects at any depth and stay in arrays")
    func removingNulls() throws {
        let value = try JSONValue(
            parsing: "{\"a\":null,\"b\":{\"c\":null,\"d\":[null,{\"e\":null,\"f\":0},[null]]},\"g\":{}}")
        #expect(value.removingNulls().text() == "{\"b\":{\"d\":[null,{\"f\":0},[null]]},\"g\":{}}")
        #expect(JSONValue.null.removingNulls() == .null)
    }

    @Test("Objects are equal in any member order, and names are compared byte by byte")
    func equality() throws {
        let one: JSONValue = ["a": 1, "b": [2]]
        let other: JSONValue = ["b": [2.0], "a": 1.0]
        #expect(one == other)
        #expect(one.hashValue == other.hashValue)
        #expect(one != ["a": 1])
        #expect(one != ["a": 1, "b": [3]])
        let composed = JSONObject([.init("\u{E9}", 1)])
        #expect(composed["e\u{301}"] == .none)
        #expect(composed != JSONObject([.init("e\u{301}", 1)]))
    }

    @Test(
        "Members are set, changed and removed in small and large objects",
        arguments: [3, 8, 9, 10, 100])
    func members(count: Int) {
        var object = JSONObject()
        for number in 0..<count { object["\(number)"] = JSONValue(number) }
        object["1"] = "one"
        #expect(object.count == count)
        #expect(object.map(\.name) == (0..<count).map { "\($0)" })
        object["0"] = .none
        #expect(object.count == count - 1)
        #expect(object["0"] == .none)
        #expect(object["1"] == .some("one"))
        #expect(object["\(count - 1)"] == JSONValue(count - 1))
        object["new"] = .some(.null)
        #expect(object.names.last == "new")
    }

    @Test("Numbers are equal if their values are equal")
    func numbers() throws {
        func number(_ text: String) throws -> JSONNumber { try #require(JSONNumber(text: text)) }
        for (left, right) in [
            ("1", "1.0"), ("1", "10e-1"), ("100", "1e2"), ("-0", "0.0e9"), ("0.5", "5E-1"),
            ("1e400", "10e399"),
            ("12345678901234567890123", "1.2345678901234567890123e22"), ("1e0000000000000000000001", "10"),
        ] {
            #expect(try number(left) == number(right), "\(left), \(right)")
            #expect(try number(left).hashValue == number(right).hashValue)
        }
        for (left, right) in [
            ("1", "-1"), ("1", "10"), ("0.1", "0.10000000000000001"),
            ("1e99999999999999999999", "1e99999999999999999998"),
            ("9007199254740993", "9007199254740992"), ("1e99999999999999999999", "1e-99999999999999999999"),
        ] {
            #expect(try number(left) != number(right), "\(left), \(right)")
        }
        for text in ["", "01", "1.", "+1", " 1", "1 ", "NaN", "0x1", "1e"] {
            #expect(JSONNumber(text: text) == nil)
        }
    }

    @Test("Numbers convert to integers and doubles if they are representable")
    func conversions() throws {
        func number(_ text: String) throws -> JSONNumber { try #require(JSONNumber(text: text)) }
        #expect(try number("9223372036854775807").int == .max)
        #expect(try number("-9223372036854775808").int == .min)
        #expect(try number("9223372036854775808").int == nil)
        #expect(try number("9223372036854775808").uint64 == 9_223_372_036_854_775_808)
        #expect(try number("18446744073709551615.0").uint64 == .max)
        #expect(try number("-1").uint64 == nil)
        #expect(try number("1.5e1").int == 15)
        #expect(try number("1e20").int == nil)
        #expect(try number("1e999999999999999").int == nil)
        #expect(try number("0e999999999999999999999").int == 0)
        #expect(try number("0.1").double == 0.1)
        #expect(try number("1e400").double == nil)
        #expect(JSONNumber(Double.infinity) == nil)
        #expect(JSONNumber(-Double.zero)?.text == "-0.0")
    }

    @Test("A tree can be coded with Foundation's coders and decoded into a custom type")
    func coding() throws {
        struct Note: Codable, Equatable {
            var title: String
            var tags: [String]
            var draft: Bool?
        }
        let value = try JSONValue(
            parsing:
                "{\"title\":\"Sea\",\"tags\":[],\"draft\":null,\"n\":[1,-2.5,18446744073709551615,true,{}]}")
        #expect(try value.decode(Note.self) == Note(title: "Sea", tags: [], draft: nil))
        let coded = try JSONDecoder().decode(JSONValue.self, from: JSONEncoder().encode(value))
        #expect(coded == value)
        #expect(throws: EncodingError.self) { try JSONEncoder().encode(try JSONValue(parsing: "[1e400]")) }
        let plist = try PropertyListDecoder().decode(
            JSONValue.self, from: PropertyListEncoder().encode(Note(title: "é", tags: ["a"], draft: true)))
        #expect(plist == ["title": "é", "tags": ["a"], "draft": true])
    }

    @Test("A tree as a body keeps all digits of its numbers")
    func body() throws {
        let body = HTTPBody.json(try JSONValue(parsing: "{\"n\": 0.10000000000000000001}"))
        #expect(body.contentType == "application/json")
        #expect(body.length == UInt64("{\"n\":0.10000000000000000001}".utf8.count))
    }

    @Test("A tree can be printed with indentation and sorted names")
    func styles() {
        let value: JSONValue = ["b": [1, []], "a": [:]]
        #expect(value.text([.indented, .sorted]) == "{\n  \"a\": {},\n  \"b\": [\n    1,\n    []\n  ]\n}")
        #expect(value.text(.sorted) == "{\"a\":{},\"b\":[1,[]]}")
    }
}
