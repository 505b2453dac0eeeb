import Martlet
import Testing

/// A client's view of a response, in a form that allows comparing two clients.
struct CurlCrossCheck: Equatable {
    /// One request for both clients.
    struct Question: Sendable, CustomTestStringConvertible {
        var method = "GET"
        var url: String
        var headers: [(name: String, value: String)] = []

        var testDescription: String { "\(method) \(url)" }
    }

    /// A field, with its name as sent.
    struct Field: Equatable {
        let name: String
        let value: String
    }

    let status: Int
    /// The fields in their order, except `Date`, which differs between the requests, and the connection fields, because
    /// the two clients manage connections differently.
    let fields: [Field]
    let body: [UInt8]

    private static func isCompared(_ name: String) -> Bool {
        !["date", "connection", "keep-alive"].contains(name.lowercased())
    }

    /// Sends the request by curl.
    static func curl(_ question: Question, _ options: [String] = []) async throws -> CurlCrossCheck {
        // With `-X HEAD` curl would wait for a body.
        let method = question.method == "HEAD" ? ["--head"] : ["-X", question.method]
        let headers = question.headers.flatMap { ["-H", "\($0.name): \($0.value)"] }
        let answer = try await Curl.run(options + method + headers + [question.url])
        #expect(answer.exitCode == 0, "\(answer.message)")
        let isHead = question.method == "HEAD"
        return CurlCrossCheck(
            status: answer.status,
            fields: answer.headers.filter { isCompared($0.name) }.map {
                Field(name: $0.name, value: $0.value)
            },
            // curl writes the head of a response to HEAD in place of the body.
            body: isHead ? [] : answer.body)
    }

    /// Sends the request by Martlet.
    static func martlet(_ question: Question, _ session: HTTPSession) async throws -> CurlCrossCheck {
        let method = try #require(HTTPRequest.Method(question.method))
        var headers = HTTPFields()
        for header in question.headers {
            headers.append(HTTPField(name: try #require(HTTPField.Name(header.name)), value: header.value))
        }
        // Neither client decodes codings that the caller requested.
        var options = RequestOptions()
        options.decompresses = false
        options.redirects = .doNotFollow
        let answer = try await session.send(
            HTTPRequest(method: method, url: question.url, headers: headers), options: options)
        let fields = Array(answer.rawHead.fields) + Array(answer.rawTrailers ?? FieldBlock())
        return CurlCrossCheck(
            status: answer.response.status.code,
            fields: fields.filter { isCompared($0.name) }.map { Field(name: $0.name, value: $0.value) },
            body: answer.body)
    }
}
