import FoundationEssentials
import Martlet
import Testing

@Suite("Query options")
struct QueryOptionTests {
    private func text(_ parameters: ParameterValue, _ change: (inout QueryEncoding) -> Void) throws -> String {
        var encoding = QueryEncoding.bracketed
        change(&encoding)
        return try encoding.encoded(parameters)
    }

    @Test("By default array names are repeated, Booleans are words, and nulls are omitted")
    func defaults() throws {
        let parameters: ParameterValue = [
            "tag": ["swift", "linux", nil], "done": true, "open": false, "page": nil, "limit": 20,
            "filter": ["city": "Köln", "sizes": [1, 2]],
        ]
        #expect(
            try QueryEncoding().encoded(parameters)
                == "done=true&filter%5Bcity%5D=K%C3%B6ln&filter%5Bsizes%5D=1&filter%5Bsizes%5D=2&limit=20"
                + "&open=false&tag=swift&tag=linux")
        #expect(try QueryEncoding().encoded(["a": nil, "b": [], "c": [nil]]) == "")
        #expect(
            try QueryEncoding.bracketed.encoded(parameters)
                == "done=1&filter%5Bcity%5D=K%C3%B6ln&filter%5Bsizes%5D%5B%5D=1&filter%5Bsizes%5D%5B%5D=2&limit=20"
                + "&open=0&page&tag%5B%5D=swift&tag%5B%5D=linux&tag%5B%5D")
        let url = try HTTPURL("http://a.example/").appending(parameters: ["tag": ["a", "b"], "n": nil])
        #expect(url.absoluteString == "http://a.example/?tag=a&tag=b")
    }

    @Test("Arrays can have indices, repeated names or separated values")
    func arrays() throws {
        let parameters: ParameterValue = ["a": ["x,y", 2, nil], "b": [], "c": .set([2, 1])]
        #expect(
            try text(parameters) { $0.arrays = .indexed } == "a%5B0%5D=x%2Cy&a%5B1%5D=2&a%5B2%5D&c=1&c=2")
        #expect(try text(parameters) { $0.arrays = .repeated } == "a=x%2Cy&a=2&a&c=1&c=2")
        #expect(try text(parameters) { $0.arrays = .commaSeparated } == "a=x%2Cy,2,&c=1,2")
        #expect(
            try text(parameters) {
                $0.arrays = .commaSeparated
                $0.nulls = .dropped
            } == "a=x%2Cy,2&c=1,2")
        let error = #expect(throws: ParameterError.self) {
            try text(["a": [1, ["b": 2]]]) { $0.arrays = .commaSeparated }
        }
        #expect(error?.code == .notAList)
        #expect(error?.path == "a[1]")
    }

    @Test("Booleans can be words")
    func booleans() throws {
        #expect(try text(["a": true, "b": false]) { $0.booleans = .literal } == "a=true&b=false")
    }

    @Test("Nulls can have an equals sign or be omitted")
    func nulls() throws {
        #expect(try text(["a": nil, "b": [nil, 1]]) { $0.nulls = .emptyValue } == "a=&b%5B%5D=&b%5B%5D=1")
        #expect(try text(["a": nil, "b": [nil, 1]]) { $0.nulls = .dropped } == "b%5B%5D=1")
    }

    @Test("Dates can be ISO 8601 texts, seconds or milliseconds")
    func dates() throws {
        let parameters: ParameterValue = ["at": .date(Date(timeIntervalSince1970: 1_000_000_000.25))]
        #expect(try text(parameters) { _ in } == "at=2001-09-09T01%3A46%3A40Z")
        #expect(
            try text(parameters) { $0.dates = .iso8601WithMilliseconds } == "at=2001-09-09T01%3A46%3A40.250Z")
        let last: ParameterValue = ["at": .date(Date(timeIntervalSince1970: 253_402_300_799))]
        #expect(try text(last) { _ in } == "at=9999-12-31T23%3A59%3A59Z")
        #expect(try text(last) { $0.dates = .iso8601WithMilliseconds } == "at=9999-12-31T23%3A59%3A59.000Z")
        #expect(try text(parameters) { $0.dates = .secondsSince1970 } == "at=1000000000.25")
        #expect(try text(parameters) { $0.dates = .millisecondsSince1970 } == "at=1000000000250")
    }

    @Test(
        "A date outside of a format's range is rejected",
        arguments: [1e300, -1e300, .infinity, .nan, 253_402_300_799.5, 253_402_300_800])
    func dateRange(_ seconds: Double) throws {
        let parameters: ParameterValue = ["at": .date(Date(timeIntervalSince1970: seconds))]
        let error = #expect(throws: ParameterError.self) { try text(parameters) { _ in } }
        #expect(error?.code == .dateOutOfRange)
        guard seconds.magnitude > 1e20 || seconds.isNaN else { return }
        #expect(throws: ParameterError.self) { try text(parameters) { $0.dates = .millisecondsSince1970 } }
    }

    @Test("Bytes are in Base64 or in base64url")
    func data() throws {
        let parameters: ParameterValue = ["d": .data(Data([0xFB, 0xFF, 0xFE, 0x01]))]
        #expect(try text(parameters) { _ in } == "d=%2B//%2BAQ%3D%3D")
        #expect(try text(parameters) { $0.data = .base64URL } == "d=-__-AQ")
    }

    @Test(
        "Names can be converted to snake case",
        arguments: [
            ("userName", "user_name"), ("baseURLString", "base_url_string"), ("URL", "url"), ("a", "a"),
            ("page2Size", "page2_size"), ("already_there", "already_there"), ("", ""),
            ("_leading", "_leading"),
            ("myID", "my_id"), ("HTTPServer", "http_server"),
        ])
    func keys(_ name: String, _ expected: String) throws {
        #expect(try text(.object([name: 1])) { $0.keys = .snakeCase } == "\(expected)=1")
    }

    @Test("Names are sorted after their conversion")
    func sortedStyles() throws {
        #expect(try text(["aZ": 1, "a": ["bC": 2]]) { $0.keys = .snakeCase } == "a%5Bb_c%5D=2&a_z=1")
    }

    @Test("A custom serializer replaces all other options")
    func serializer() throws {
        let made = try text(["a": 1]) {
            $0.serializer = { parameters in
                guard case .object(let values) = parameters else { return "" }
                return values.keys.sorted().joined(separator: ";")
            }
        }
        #expect(made == "a")
    }
}
