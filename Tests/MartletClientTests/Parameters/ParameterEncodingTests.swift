import FoundationEssentials
import Martlet
import Testing

@testable import MartletCore
@testable import MartletHosts

@Suite("Parameters in URLs and bodies")
struct ParameterEncodingTests {
    private struct Draft: Codable, Equatable {
        var title = "Sea"
        var tags = ["b", "a"]
    }

    private func host(_ encoding: ParameterEncoding = .form) throws -> HTTPHost {
        try HTTPSession().host("http://a.example/v1", encoding: encoding)
    }

    private func text(_ body: HTTPBody) throws -> String {
        String(decoding: try #require(try body.bytesInMemory?.get()), as: UTF8.self)
    }

    @Test(
        "GET, HEAD and DELETE send parameters in the URL in every format",
        arguments: [HTTPRequest.Method.get, .head, .delete])
    func inURL(_ method: HTTPRequest.Method) throws {
        for encoding in [ParameterEncoding.form, .json, .propertyList(.xml)] {
            let made = try host(encoding).prepare(method, "p?x=1", parameters: ["b": 2, "a": [true, "c"]])
            #expect(made.request.path == "/v1/p?x=1&a=true&a=c&b=2")
            #expect(!made.body.isPresent)
        }
    }

    @Test(
        "Other methods send parameters in the body with the form's content type",
        arguments: [HTTPRequest.Method.post, .put, .patch])
    func inBody(_ method: HTTPRequest.Method) throws {
        let made = try host().prepare(method, "p?x=1", parameters: Draft())
        #expect(made.request.path == "/v1/p?x=1")
        #expect(made.body.contentType == "application/x-www-form-urlencoded")
        #expect(try text(made.body) == "tags=b&tags=a&title=Sea")
    }

    @Test("The methods with parameters in the URL are configurable")
    func chosenMethods() throws {
        let encoding = ParameterEncoding.form.with { $0.methodsWithParametersInURL = [.post] }
        #expect(try host(encoding).prepare(.post, "p", parameters: ["a": 1]).request.path == "/v1/p?a=1")
        let made = try host(encoding).prepare(.delete, "p", parameters: ["a": 1])
        #expect(made.request.path == "/v1/p")
        #expect(try text(made.body) == "a=1")
    }

    @Test("Parameters are added to the URL if the request has a body")
    func besideBody() throws {
        let made = try host().prepare(.post, "p", parameters: ["a": 1], body: .text("hello"))
        #expect(made.request.path == "/v1/p?a=1")
        #expect(try text(made.body) == "hello")
    }

    @Test("Without parameters there is no body, and empty parameters are an empty form")
    func noParameters() throws {
        #expect(try !host().prepare(.post, "p").body.isPresent)
        #expect(try !host(.json).prepare(.post, "p", parameters: Draft?.none).body.isPresent)
        let empty = try host().prepare(.post, "p", parameters: [:])
        #expect(try text(empty.body) == "")
        #expect(empty.body.contentType == "application/x-www-form-urlencoded")
        #expect(try host().prepare(.get, "p", parameters: [:]).request.path == "/v1/p")
    }

    @Test("JSON from types and literals has sorted names and ISO 8601 dates")
    func json() throws {
        let date = Date(timeIntervalSince1970: 0)
        let literal = try ParameterEncoding.json.body(
            for: ["b": [1, nil, true], "a": .date(date), "s": .set([2, 1])] as ParameterValue)
        #expect(literal.contentType == "application/json")
        #expect(try text(literal) == #"{"a":"1970-01-01T00:00:00Z","b":[1,null,true],"s":[1,2]}"#)
        #expect(try text(ParameterEncoding.json.body(for: Draft())) == #"{"tags":["b","a"],"title":"Sea"}"#)
        #expect(try text(ParameterEncoding.json.body(for: [1, 2])) == "[1,2]")
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        #expect(try text(ParameterEncoding.json(encoder).body(for: ["a": 1])) == #"{"a":1}"#)
    }

    @Test("A value that JSON cannot represent is rejected with its path")
    func badJSON() throws {
        let error = #expect(throws: ParameterError.self) {
            try ParameterEncoding.json.body(for: ["a": [.number(.nan)]] as ParameterValue)
        }
        #expect(error?.path == "a[0]")
    }

    @Test("XML and binary property lists decode to the encoded values", arguments: PropertyListFormat.allCases)
    func propertyLists(_ format: PropertyListFormat) throws {
        for body in [
            HTTPBody.propertyList(Draft(), format: format),
            try ParameterEncoding.propertyList(format).body(for: Draft()),
            try ParameterEncoding.propertyList(format).body(
                for: ["title": "Sea", "tags": ["b", "a"]] as ParameterValue),
        ] {
            #expect(body.contentType == "application/x-plist")
            let bytes = try #require(try body.bytesInMemory?.get())
            #expect(bytes.starts(with: format == .xml ? "<?xml".utf8 : "bplist".utf8))
            #expect(try PropertyListDecoder().decode(Draft.self, from: Data(bytes)) == Draft())
        }
    }

    @Test("A null or a top-level text in a property list is an error")
    func badPropertyLists() throws {
        let error = #expect(throws: ParameterError.self) {
            try ParameterEncoding.propertyList(.xml).body(for: ["a": [nil]] as ParameterValue)
        }
        #expect(error?.code == .nullNotAllowed)
        guard case .failure? = HTTPBody.propertyList("just a text").bytesInMemory else {
            Issue.record("a text alone is no property list")
            return
        }
    }

    @Test("A URL that becomes too long is an error, and its query is not truncated")
    func tooLong() throws {
        let long = String(repeating: "&", count: 30_000)
        let error = #expect(throws: HTTPError.self) {
            try host().prepare(.get, "p", parameters: ["a": .string(long)])
        }
        #expect(error?.code == .invalidURL)
    }

    @Test("An encoding error of a call contains the reason and no values")
    func rejection() throws {
        let error = #expect(throws: HTTPError.self) {
            try host().prepare(.get, "p", parameters: ["token": .string("hunter2"), "n": .number(.nan)])
        }
        #expect(error?.code == .invalidRequest)
        #expect((error?.underlying as? ParameterError)?.path == "n")
        #expect(error.map { "\($0)".contains("hunter2") } == false)
        // Foundation's encoder includes the rejected value in its error.
        let rejected = #expect(throws: HTTPError.self) {
            try host(.json).prepare(.post, "p", parameters: ["n": Double.infinity])
        }
        #expect(rejected?.code == .invalidRequest)
        #expect(rejected?.underlying is EncodingError)
        #expect(rejected?.message.contains("inf") == false)
    }

    private struct Rejection: Error {}

    @Test("A custom serializer writes the query and can throw")
    func serializer() throws {
        let upper = ParameterEncoding.form.with {
            $0.query.serializer = { _ in "x y\r\n#é&z=1%20" }
        }
        #expect(
            try host(upper).prepare(.get, "p?q", parameters: ["a": 1]).request.path
                == "/v1/p?q&x%20y%0D%0A%23%C3%A9&z=1%20")
        let rejecting = ParameterEncoding.form.with { $0.query.serializer = { _ in throw Rejection() } }
        #expect(throws: Rejection.self) { try host(rejecting).prepare(.get, "p", parameters: ["a": 1]) }
    }
}
