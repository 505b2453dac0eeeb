import Martlet
import Testing

@testable import MartletOffline

@Suite("Idempotency-Key of a queued request")
struct OfflineKeyTests {
    private func text(
        _ key: OfflineSubmission.Key, _ method: HTTPRequest.Method = .post, own: String? = nil,
        option: IdempotencyKey? = nil
    ) throws -> String? {
        var request = try HTTPRequest(method: method, url: "http://127.0.0.1/")
        if let own { request.headerFields[.idempotencyKey] = own }
        return OfflineKey.text(key, option, of: request)
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

    @Test("The key of the options stays as it is, and applies if neither the submission nor the fields decide")
    func ofOptions() throws {
        let option = IdempotencyKey("order-17")
        for method in [HTTPRequest.Method.post, .put] {
            #expect(try text(.automatic, method, option: option) == "order-17")
            #expect(try text(.automatic, method, option: .random)?.wholeMatch(of: /"[0-9a-f]{32}"/) != nil)
            #expect(try text(.value("abc"), method, option: option) == "\"abc\"")
            #expect(try text(.none, method, option: option) == nil)
            #expect(try text(.automatic, method, own: "theirs", option: option) == "theirs")
        }
    }
}
