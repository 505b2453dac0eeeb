import Martlet
import Testing

@testable import MartletOffline

@Suite("Idempotency-Key of a queued request")
struct OfflineKeyTests {
    private func text(
        _ key: OfflineSubmission.Key, _ method: HTTPRequest.Method = .post, own: String? = nil
    ) throws -> String? {
        var request = try HTTPRequest(method: method, url: "http://127.0.0.1/")
        if let own { request.headerFields[.idempotencyKey] = own }
        return OfflineKey.text(key, of: request)
    }

    @Test("Methods that are not idempotent get a quoted string of 128 random bits, others get no key")
    func automatic() throws {
        let first = try #require(try text(.automatic))
        let second = try #require(try text(.automatic, .patch))
        #expect(first != second)
        #expect(first.count == 34)
        #expect(first.wholeMatch(of: /"[0-9a-f]{32}"/) != nil)
        for method in [HTTPRequest.Method.get, .put, .delete] { #expect(try text(.automatic, method) == nil) }
    }

    @Test("A given key is quoted once, and a key in the request's fields stays as it is")
    func own() throws {
        #expect(try text(.value("abc")) == "\"abc\"")
        #expect(try text(.value("\"abc\"")) == "\"abc\"")
        #expect(try text(.value("a\"b\\c\u{7F}ü")) == "\"a\\\"b\\\\c??\"")
        // Surrounding quotes do not make it a valid quoted string.
        #expect(try text(.value("\"a\"b\"")) == "\"\\\"a\\\"b\\\"\"")
        #expect(try text(.value("\"a\r\nX: y\"")) == "\"\\\"a??X: y\\\"\"")
        #expect(try text(.value("\"a\\\"")) == "\"\\\"a\\\\\\\"\"")
        #expect(try text(.value("abc"), own: "theirs") == "theirs")
        #expect(try text(.none, own: "theirs") == "theirs")
        #expect(try text(.none) == nil)
    }
}
