import MartletURL
import FoundationEssentials
import MartletCore
import Testing

@Suite("Codable URLs")
struct HTTPURLCodableTests {
    @Test("A URL is encoded as a string with its password and decodes to an equal URL")
    func roundTrip() throws {
        let urls = [
            try HTTPURL("https://ann:hunter2@bücher.example:8443/a%2fb?q#f"),
            try HTTPURL("http://h/a/../b", pathAsIs: true),
        ]
        let data = try JSONEncoder().encode(urls)
        #expect(try JSONDecoder().decode([HTTPURL].self, from: data) == urls)
        #expect(try JSONDecoder().decode([String].self, from: data) == urls.map(\.absoluteString))
    }

    @Test("A string that is not a URL decodes to an error that gives the reason and the position")
    func corrupt() throws {
        let error = #expect(throws: DecodingError.self) {
            try JSONDecoder().decode([HTTPURL].self, from: Data("[\"http://h:0/\"]".utf8))
        }
        guard case .dataCorrupted(let context) = error else {
            Issue.record("not reported as corrupt data")
            return
        }
        #expect(context.debugDescription == "port 0 is out of range 1–65535 at character 9")
    }
}
