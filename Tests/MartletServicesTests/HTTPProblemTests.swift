import Foundation
import Martlet
import MartletTesting
import Testing

@Suite("Problem details of RFC 9457", .timeLimit(.minutes(20)))
struct HTTPProblemTests {
    struct Row: Sendable, CustomTestStringConvertible {
        var text: String
        var type = "about:blank"
        var title: String?
        var status: Int?
        var detail: String?
        var instance: String?
        var extensions: [String] = []
        var testDescription: String { text }
    }

    @Test(
        "Members of the wrong type are ignored, others are extensions, and references are resolved",
        arguments: [
            Row(text: "{}"),
            Row(
                text: #"{"type":"https://e.org/p#a","title":"T","status":403,"detail":"D","instance":"urn:x:1"}"#,
                type: "https://e.org/p#a", title: "T", status: 403, detail: "D", instance: "urn:x:1"),
            Row(
                text: #"{"type":"/probs/out","instance":"?log=1"}"#, type: "http://h.example/probs/out",
                instance: "http://h.example/v1/a?log=1"),
            Row(text: #"{"type":"probs:a/b"}"#, type: "probs:a/b"),
            Row(text: #"{"type":"probs/a:b"}"#, type: "http://h.example/v1/probs/a:b"),
            Row(text: #"{"type":"http://["}"#, type: "http://["),
            Row(text: #"{"type":null,"title":7,"status":"403","detail":["D"],"instance":{}}"#),
            Row(text: #"{"type":true,"title":"T","status":403.5}"#, title: "T"),
            Row(text: #"{"status":99}"#), Row(text: #"{"status":1000}"#), Row(text: #"{"status":-404}"#),
            Row(text: #"{"status":1e400}"#), Row(text: #"{"status":4.04e2}"#, status: 404),
            Row(
                text: ##"{"balance":30,"Title":"x","errors":[{"pointer":"#/age"}],"title":"a","title":"b"}"##,
                title: "b", extensions: ["balance", "Title", "errors"]),
        ])
    func members(row: Row) throws {
        let members = try #require(try JSONValue(parsing: row.text).objectValue)
        let problem = HTTPProblem(members, base: try HTTPURL("http://h.example/v1/a"))
        #expect(problem.type == row.type)
        #expect(problem.title == row.title)
        #expect(problem.status == row.status)
        #expect(problem.detail == row.detail)
        #expect(problem.instance == row.instance)
        #expect(problem.extensions.names == row.extensions)
    }

    @Test("A host throws the problem itself, with its response, and describes the request")
    func host() async throws {
        try await TestOrigin.withOrigin { _ in
            .json(
                text:
                    #"{"type":"/p","title":"No\ncredit","detail":"\#(String(repeating: "x", count: 999))","balance":30}"#,
                status: 403, headers: ["Retry-After": "7"], contentType: "Application/Problem+JSON; charset=utf-8")
        } run: { origin async throws in
            let api = try HTTPSession.patient().host(origin.base) { $0.errors = .problem }
            let problem = try #require(await #expect(throws: HTTPProblem.self) { try await api.get("a?api_key=s") })
            #expect(problem.type == origin.url("/p"))
            #expect(problem.extensions["balance"]?.intValue == 30)
            #expect(problem.exchange?.headers[.retryAfter] == "7")
            #expect(problem.description.hasPrefix("GET \(origin.base)/a?api_key=***: 403 No\\ncredit: xxx"))
            #expect(problem.description.utf8.count < 400)
            #expect(problem.localizedDescription == problem.description)
            let error = try #require(
                await #expect(throws: HTTPError.self) {
                    try await HTTPSession.patient().get(origin.url(), validate: .success)
                })
            #expect(error.problem?.title == "No\ncredit")
        }
    }

    @Test(
        "A response without problem details leaves the error unchanged",
        arguments: [
            ("application/json", #"{"title":"T"}"#), ("application/problem+xml", "<problem/>"),
            ("application/problem+json", #"["T"]"#), ("application/problem+json", #"{"title":"#),
            ("application/problem+json", ""), ("text/html", "<p>"),
            ("application/problem+json", String(repeating: "[", count: 100_000)),
        ])
    func otherBody(contentType: String, body: String) async throws {
        try await TestOrigin.withOrigin { _ in
            .text(body, status: 500, contentType: contentType)
        } run: { origin async throws in
            let api = try HTTPSession.patient().host(origin.base) { $0.errors = .problem }
            let error = try #require(await #expect(throws: HTTPError.self) { try await api.get("a") })
            #expect(error.code == .unacceptableStatus)
            #expect(error.problem == nil)
        }
    }

    private enum ServiceError: Error, Equatable {
        case quota(Int?)
    }

    @Test("A closure turns problems into other errors, or returns the original error")
    func closure() async throws {
        try await TestOrigin.withOrigin { request in
            .json(
                text: #"{"type":"tag:a,1:\#(request.path)","left":3}"#, status: 429,
                contentType: "application/problem+json")
        } run: { origin async throws in
            let api = try HTTPSession.patient().host(origin.base) {
                $0.errors = .problem { problem, error in
                    guard problem.type == "tag:a,1:/quota" else { return error }
                    return ServiceError.quota(problem.extensions["left"]?.intValue)
                }
            }
            await #expect(throws: ServiceError.quota(3)) { try await api.get("quota") }
            let error = await #expect(throws: HTTPError.self) { try await api.get("other") }
            #expect(error?.status == 429)
        }
    }
}
