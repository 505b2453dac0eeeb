import FoundationEssentials
import Martlet
import Testing

@Suite("Codable host configurations and parameter encodings")
struct HostCodingTests {
    private static func json(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }

    private static func read<Value: Decodable>(_ type: Value.Type, _ text: String) throws -> Value {
        try JSONDecoder().decode(type, from: Data(text.utf8))
    }

    private struct Draft: Encodable {
        var createdAt = Date(timeIntervalSince1970: 1.5)
        var dataOf = Data([1, 2])
        var tags = ["b", "a"]
        var number = Double.infinity
        var isDone = true
    }

    private static func custom() -> [ParameterEncoding] {
        let first = JSONEncoder()
        first.keyEncodingStrategy = .convertToSnakeCase
        first.dateEncodingStrategy = .millisecondsSince1970
        first.dataEncodingStrategy = .deferredToData
        first.outputFormatting = [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes]
        let second = JSONEncoder()
        second.dateEncodingStrategy = .secondsSince1970
        second.outputFormatting = [.sortedKeys]
        let third = JSONEncoder()
        third.outputFormatting = [.sortedKeys]
        for encoder in [first, second, third] {
            encoder.nonConformingFloatEncodingStrategy = .convertToString(
                positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
        }
        return [.json(first), .json(second), .json(third)]
    }

    @Test("A parameter encoding produces the same bytes after it was encoded and decoded")
    func encodings() throws {
        let query = ParameterEncoding.form.with {
            $0.query = .bracketed
            $0.query.dates = .millisecondsSince1970
            $0.query.data = .base64URL
            $0.query.keys = .snakeCase
            $0.methodsWithParametersInURL = [.get]
        }
        let plain: ParameterValue = [
            "aB": [true, nil], "d": .date(Date(timeIntervalSince1970: 1)), "x": .data(Data([255])),
        ]
        for encoding in [.form, query, .json] + HostCodingTests.custom() {
            let text = try HostCodingTests.json(encoding)
            let again = try HostCodingTests.read(ParameterEncoding.self, text)
            #expect(try HostCodingTests.json(again) == text)
            #expect(again.methodsWithParametersInURL == encoding.methodsWithParametersInURL)
            #expect(try again.query.encoded(plain) == encoding.query.encoded(plain))
            #expect(
                try again.body(for: plain).bytesInMemory?.get()
                    == encoding.body(for: plain).bytesInMemory?.get())
        }
        for encoding in HostCodingTests.custom() {
            let again = try HostCodingTests.read(ParameterEncoding.self, HostCodingTests.json(encoding))
            #expect(
                try again.body(for: Draft()).bytesInMemory?.get()
                    == encoding.body(for: Draft()).bytesInMemory?.get())
        }
        for format in PropertyListFormat.allCases {
            let again = try HostCodingTests.read(
                ParameterEncoding.self, HostCodingTests.json(ParameterEncoding.propertyList(format)))
            #expect(try again.body(for: ["a": 1]).contentType == "application/x-plist")
        }
    }

    @Test("Encoding a custom closure or user info of an encoder is an error", arguments: 0..<5)
    func closures(_ index: Int) throws {
        let encoder = JSONEncoder()
        var encoding = ParameterEncoding.json(encoder)
        switch index {
        case 0: encoder.dateEncodingStrategy = .custom { _, _ in }
        case 1: encoder.keyEncodingStrategy = .custom { $0.last ?? $0[0] }
        case 2: encoder.dataEncodingStrategy = .custom { _, _ in }
        case 3: encoding = .form.with { $0.query.serializer = { _ in "" } }
        default:
            if let key = CodingUserInfoKey(rawValue: "a") { encoder.userInfo[key] = 1 }
        }
        let closure = encoding
        #expect(throws: EncodingError.self) { try HostCodingTests.json(closure) }
        var host = HostConfiguration(base: try HTTPURL("https://api.example/v2"))
        host.encoding = closure
        #expect(throws: EncodingError.self) { try HostCodingTests.json(host) }
    }

    @Test("A host from a decoded configuration prepares equal requests, without the secrets")
    func hosts() throws {
        let session = HTTPSession()
        let api = try session.host(
            "https://user:secret@api.example:8443/v2",
            headers: [.accept: "application/json", .authorization: "Bearer secret"], encoding: .json
        ).with {
            $0.options.timeouts.total = .seconds(7)
            $0.options.retry = .transient()
            $0.options.authentication = AuthenticationSettings(credentials: .bearer("secret"))
            $0.validatesStatus = true
        }
        let text = try HostCodingTests.json(api.configuration)
        #expect(!text.contains("secret"))
        let again = try HTTPHost(HostCodingTests.read(HostConfiguration.self, text), session: session)
        #expect(try HostCodingTests.json(again.configuration) == text)
        #expect(again.base == api.base && again.validatesStatus && again.authentication == nil)
        #expect(again.options.timeouts == api.options.timeouts && again.options.retry == api.options.retry)
        let made = try again.prepare(.post, "posts", parameters: ["a": true])
        let original = try api.prepare(.post, "posts", parameters: ["a": true])
        #expect(made.request.url == original.request.url)
        #expect(try made.body.bytesInMemory?.get() == original.body.bytesInMemory?.get())
        #expect(made.request.headerFields[.authorization] == nil)
    }

    @Test(
        "Decoding an invalid host configuration is an error",
        arguments: [
            "{}", #"{"base":"x y"}"#, #"{"base":"https://a","encoding":{"format":"xml"}}"#,
            #"{"base":"https://a","encoding":{"query":{"arrays":"x"}}}"#,
            #"{"base":"https://a","encoding":{"methodsInURL":["A B"]}}"#,
            #"{"base":"https://a","options":{"timeouts":{"total":[-1,0]}}}"#,
        ])
    func badValues(_ text: String) {
        #expect(throws: DecodingError.self) { try HostCodingTests.read(HostConfiguration.self, text) }
    }

    @Test("Timeouts with their default are not encoded, and disabled ones are null")
    func timeouts() throws {
        #expect(try HostCodingTests.json(Timeouts()) == "{}")
        #expect(try HostCodingTests.json(Timeouts(head: nil)) == #"{"head":null}"#)
        for value in [
            Timeouts(), Timeouts(head: nil, total: .milliseconds(1)), Timeouts(poolWait: .seconds(9)),
        ] {
            #expect(try HostCodingTests.read(Timeouts.self, HostCodingTests.json(value)) == value)
        }
    }
}
