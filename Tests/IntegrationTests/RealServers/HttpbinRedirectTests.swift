import Martlet
import Testing

@Suite("Redirects of httpbin", .timeLimit(.minutes(20)))
struct HttpbinRedirectTests {
    @Test(
        "A chain is followed to its end",
        arguments: [
            "/redirect/", "/relative-redirect/", "/absolute-redirect/", "/redirect/N?absolute=true",
        ])
    func chains(_ path: String) async throws {
        try await HttpbinServer.withServer { server in
            // Heads and bodies arrive separately. On a busy machine a body may arrive too late for its connection to be
            // reused: then the chains are followed again.
            for tries in 1... {
                let session = HTTPSession.plain()
                try await follow(path, server, session)
                if session.poolStatus.opened < 10 { break }
                try #require(tries < 10, "\(session.poolStatus)")
            }
        }
    }

    private func follow(_ path: String, _ server: HttpbinServer, _ session: HTTPSession) async throws {
        for count in [1, 2, 20] {
            let target =
                path.contains("N")
                ? path.split(separator: "N").joined(separator: "\(count)") : "\(path)\(count)"
            let answer = try await session.get(server.url(target))
            #expect(answer.statusCode == 200)
            #expect(try answer.httpbin.url == server.url("/get"))
            #expect(answer.url.description == server.url("/get"))
            #expect(answer.metrics.hops.map(\.status) == Array(repeating: 302, count: count))
            #expect(answer.metrics.hops.allSatisfy { $0.reason == .redirect && $0.method == .get })
        }
    }

    @Test("One redirect more than the limit is an error with the last response")
    func limit() async throws {
        try await HttpbinServer.withServer { server in
            let session = HTTPSession.plain { $0.redirects = .follow(limit: 3) }
            #expect(try await session.get(server.url("/redirect/3")).statusCode == 200)
            let error = await #expect(throws: HTTPError.self) {
                try await session.get(server.url("/redirect/4"))
            }
            #expect(error?.code == .tooManyRedirects)
            #expect(error?.exchange?.statusCode == 302)
            let rejecting = HTTPSession.plain { $0.redirects = .doNotFollow }
            let answer = try await rejecting.get(server.url("/redirect/2"))
            #expect(answer.statusCode == 302)
            #expect(answer.response.headerFields[.location] == "/relative-redirect/1")
        }
    }

    /// A request, and its form after a redirect.
    struct Rewriting: Sendable, CustomTestStringConvertible {
        let method: String
        let status: Int
        let becomes: String

        var testDescription: String { "\(method) \(status)" }
    }

    /// The rewritings of RFC 9110 §15.4.2–15.4.9.
    private static let rewritings = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE"].flatMap {
        method in
        [301, 302, 303, 307, 308].map { status in
            let becomesGet =
                status == 303 && method != "HEAD" || status < 303 && method == "POST"
            return Rewriting(method: method, status: status, becomes: becomesGet ? "GET" : method)
        }
    }

    @Test(
        "Each status leads to the method that RFC 9110 specifies, with or without the body", arguments: rewritings
    )
    func methods(_ rewriting: Rewriting) async throws {
        try await HttpbinServer.withServer { server in
            let method = try #require(HTTPRequest.Method(rewriting.method))
            let hasBody = ["POST", "PUT", "PATCH"].contains(rewriting.method)
            let path = "/redirect-to?url=/anything/there%3Fa%3Db&status_code=\(rewriting.status)"
            let answer = try await HTTPSession.plain().send(
                HTTPRequest(method: method, url: server.url(path)),
                body: hasBody ? .text("feathers") : .none)
            #expect(answer.statusCode == 200)
            #expect(answer.metrics.hops.map(\.status) == [rewriting.status])
            guard rewriting.method != "HEAD" else {
                #expect(answer.request.method == .head && answer.body.isEmpty)
                return
            }
            let report = try answer.httpbin
            #expect(report.method == rewriting.becomes)
            #expect(report.url == server.url("/anything/there?a=b"))
            let keepsBody = hasBody && rewriting.becomes == rewriting.method
            #expect(report.data == (keepsBody ? "feathers" : ""))
            #expect((report.headers?["Content-Type"] != nil) == keepsBody)
        }
    }

    @Test("Redirect statuses without a target are returned as responses", arguments: [300, 304, 305, 306])
    func others(_ status: Int) async throws {
        try await HttpbinServer.withServer { server in
            let answer = try await HTTPSession.plain().get(
                server.url("/redirect-to?url=/get&status_code=\(status)"))
            #expect(answer.statusCode == status)
            #expect(answer.metrics.hops.isEmpty)
        }
    }

    @Test("POST stays POST if the policy says so", arguments: [301, 302, 303])
    func keptMethod(_ status: Int) async throws {
        try await HttpbinServer.withServer { server in
            let session = HTTPSession.plain { $0.redirects.methodPreservingStatuses = [status] }
            let report = try await session.post(
                server.url("/redirect-to?url=/anything&status_code=\(status)"), body: .text("feathers")
            ).httpbin
            #expect(report.method == "POST")
            #expect(report.data == "feathers")
        }
    }

    @Test("A redirect to another scheme is rejected, with its response")
    func otherScheme() async throws {
        try await HttpbinServer.withServer { server in
            for place in ["ftp://127.0.0.1/", "file:///etc/passwd", "javascript:alert(1)"] {
                let error = await #expect(throws: HTTPError.self) {
                    try await HTTPSession.plain().get(server.url("/redirect-to?url=\(place)"))
                }
                #expect(error?.code == .redirectRejected, "\(place)")
                #expect(error?.exchange?.statusCode == 302)
            }
        }
    }

    @Test(
        "Every status is returned as a response, and redirects are followed", arguments: ["GET", "POST", "DELETE"])
    func statuses(_ name: String) async throws {
        let method = try #require(HTTPRequest.Method(name))
        try await HttpbinServer.withServer { server in
            let session = HTTPSession.plain()
            for status in [200, 201, 202, 203, 204, 205, 206, 300, 304, 305, 400, 401, 402, 403, 404, 405]
                + [406, 408, 409, 410, 411, 412, 413, 414, 415, 416, 417, 418, 422, 425, 426, 428, 429]
                + [431, 451, 500, 501, 502, 503, 504, 505, 507, 511, 599]
            {
                let answer = try await session.send(
                    HTTPRequest(method: method, url: server.url("/status/\(status)")))
                #expect(answer.statusCode == status)
            }
            // Their Location is /redirect/1, which only accepts GET.
            for status in [301, 302, 303, 307] {
                let answer = try await session.send(
                    HTTPRequest(method: method, url: server.url("/status/\(status)")))
                let isGet = name == "GET" || status == 303 || name == "POST" && status != 307
                #expect(answer.statusCode == (isGet ? 200 : 405), "\(status)")
            }
        }
    }
}
