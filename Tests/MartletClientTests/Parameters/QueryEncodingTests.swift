import FoundationEssentials
import Martlet
import Testing

@Suite("AFNetworking-compatible queries")
struct QueryEncodingTests {
    private func text(_ parameters: ParameterValue, _ change: (inout QueryEncoding) -> Void = { _ in }) throws
        -> String
    {
        var encoding = QueryEncoding.bracketed
        change(&encoding)
        return try encoding.encoded(parameters)
    }

    @Test("Names are sorted with upper case before lower case")
    func order() throws {
        #expect(try text(["b": 1, "a": 2, "B": 3, "aa": 4, "_": 5]) == "B=3&_=5&a=2&aa=4&b=1")
    }

    @Test("Nested objects and arrays have encoded brackets in their names")
    func nested() throws {
        let parameters: ParameterValue = [
            "phone": ["mobile": "xx", "home": "yy"], "families": ["father", "mother"],
            "name": "bang", "nums": [1, 2],
        ]
        #expect(
            try text(parameters)
                == "families%5B%5D=father&families%5B%5D=mother&name=bang&nums%5B%5D=1&nums%5B%5D=2"
                + "&phone%5Bhome%5D=yy&phone%5Bmobile%5D=xx")
    }

    @Test("Objects and arrays in arrays keep their order and have sorted names")
    func objectsInArrays() throws {
        #expect(
            try text(["a": [["y": 2, "x": 1], ["x": 3]], "b": [[1], [2, 3]]])
                == "a%5B%5D%5Bx%5D=1&a%5B%5D%5By%5D=2&a%5B%5D%5Bx%5D=3"
                + "&b%5B%5D%5B%5D=1&b%5B%5D%5B%5D=2&b%5B%5D%5B%5D=3")
    }

    @Test("A set has a name without brackets and values sorted by their texts")
    func sets() throws {
        #expect(try text(["s": .set(["b", "a", "C"]), "n": .set([9, 10])]) == "n=10&n=9&s=C&s=a&s=b")
        #expect(
            try text(["s": .set([["b": 1], ["a": 2]])]) == "s%5Ba%5D=2&s%5Bb%5D=1")
    }

    @Test("Every reserved character except ? and / is escaped, in names and values")
    func reserved() throws {
        #expect(
            try text([" :#[]@!$&'()*+,;=/?": " :#[]@!$&'()*+,;=/?"])
                == "%20%3A%23%5B%5D%40%21%24%26%27%28%29%2A%2B%2C%3B%3D/?"
                + "=%20%3A%23%5B%5D%40%21%24%26%27%28%29%2A%2B%2C%3B%3D/?")
        #expect(try text(["f+": ["1+1"]]) == "f%2B%5B%5D=1%2B1")
    }

    @Test(
        "The only unescaped ASCII characters are letters, digits and -._~/?",
        arguments: 0..<128)
    func everyByte(_ byte: Int) throws {
        let character = Character(Unicode.Scalar(UInt8(byte)))
        let isPlain = character.isLetter || character.isNumber || "-._~/?".contains(character)
        let digits = String(byte, radix: 16, uppercase: true)
        let escaped = "%\(byte < 16 ? "0" : "")\(digits)"
        #expect(QueryEncoding.escaped(String(character)) == (isPlain ? String(character) : escaped))
    }

    @Test("Grapheme clusters are escaped completely, at any position in a text")
    func emoji() throws {
        let workers = "%F0%9F%91%B4%F0%9F%8F%BF%F0%9F%91%B7%F0%9F%8F%BB%F0%9F%91%AE%F0%9F%8F%BD"
        #expect(QueryEncoding.escaped("👴🏿👷🏻👮🏽") == workers)
        let family = "👨‍👩‍👧‍👦"
        let escaped = "%F0%9F%91%A8%E2%80%8D%F0%9F%91%A9%E2%80%8D%F0%9F%91%A7%E2%80%8D%F0%9F%91%A6"
        // Offsets around the 50 UTF-16 units at which AFNetworking split texts.
        for count in [1, 4, 5, 49, 50, 51] {
            let padding = String(repeating: "x", count: count)
            #expect(QueryEncoding.escaped(padding + family + padding) == padding + escaped + padding)
        }
        #expect(QueryEncoding.escaped("名字") == "%E5%90%8D%E5%AD%97")
    }

    @Test(
        "A null is its name alone, an empty text has an equals sign, and empty containers are omitted")
    func empty() throws {
        #expect(try text(["a": nil, "b": "", "c": [], "d": [:], "e": [nil]]) == "a&b=&e%5B%5D")
        #expect(try text([:]) == "")
        #expect(try text(nil) == "")
        #expect(try text(["": 1]) == "=1")
        #expect(try QueryEncoding().encoded(["": "x"]) == "=x")
        // A null without a name has no bytes but still is a pair.
        #expect(try text(["": nil, "a": 1]) == "&a=1")
    }

    @Test("True is 1, false is 0, and numbers have their shortest exact form")
    func scalars() throws {
        #expect(try text(["a": true, "b": false]) == "a=1&b=0")
        #expect(
            try text(["a": 1.0, "b": 0.1, "c": -2.5, "d": 1e21, "e": .unsigned(.max), "f": .integer(.min)])
                == "a=1&b=0.1&c=-2.5&d=1e%2B21&e=18446744073709551615&f=-9223372036854775808")
        let decimal = try #require(Decimal(string: "12345678901234567890.123456789"))
        #expect(try text(["d": .decimal(decimal)]) == "d=12345678901234567890.123456789")
    }

    @Test("A value of a megabyte is encoded completely")
    func large() throws {
        let commas = String(repeating: ",", count: 1 << 20)
        let encoded = try text(["a": .string(commas)])
        #expect(encoded.utf8.count == 2 + 3 << 20)
        #expect(encoded.hasPrefix("a=%2C%2C") && encoded.hasSuffix("%2C"))
    }

    @Test("Infinity and NaN are rejected, and the error contains their path and no other values")
    func notFinite() throws {
        let error = #expect(throws: ParameterError.self) {
            try text(["secret": "hunter2", "filter": ["price": [1, .number(.infinity)]]])
        }
        #expect(error?.code == .notFinite)
        #expect(error?.path == "filter[price][1]")
        #expect(error?.description.contains("hunter2") == false)
        #expect(throws: ParameterError.self) { try text(["d": .decimal(.nan)]) }
    }

    @Test("Parameters without names are rejected")
    func topLevel() throws {
        for parameters: ParameterValue in [[1, 2], "a", 5, .set([1])] {
            let error = #expect(throws: ParameterError.self) { try text(parameters) }
            #expect(error?.code == .notAnObject)
        }
    }

    @Test("Values the nesting is too deeply are rejected without a stack overflow")
    func depth() throws {
        func nested(_ depth: Int) -> ParameterValue {
            (0..<depth).reduce(1) { value, _ in ["a": value] }
        }
        #expect(try text(nested(ParameterValue.depthLimit)).hasSuffix("=1"))
        let error = #expect(throws: ParameterError.self) { try text(nested(ParameterValue.depthLimit + 1)) }
        #expect(error?.code == .tooDeep)
        #expect(error.map { $0.path.utf8.count < 300 } == true)
    }
}
