import Martlet
import Testing

/// What a client made of an answer, in a form in which two clients can be compared.
struct SecondOpinion: Equatable {
    /// One request for both.
    struct Question: Sendable, CustomTestStringConvertible {
        var method = "GET"
        var url: String
        var headers: [(name: String, value: String)] = []

        var testDescription: String { "\(method) \(url)" }
    }

    /// A field, its name as sent.
    struct Field: Equatable {
        let name: String
        let value: String
    }

    let status: Int
    /// In the order they came. Left out are `Date`, which tells when each client asked, and the fields that belong to
    /// the connection, whose life the two plan differently.
    let fields: [Field]
    let body: [UInt8]

    private static func isCompared(_ name: String) -> Bool {
        !["date", "connection", "keep-alive"].contains(name.lowercased())
    }

    /// What curl says.
    static func curl(_ question: Question, _ options: [String] = []) async throws -> SecondOpinion {
        // With `-X HEAD` curl would wait for a body.
        let method = question.method == "HEAD" ? ["--head"] : ["-X", question.method]
        let headers = question.headers.flatMap { ["-H", "\($0.name): \($0.value)"] }
        let answer = try await Curl.run(options + method + headers + [question.url])
        #expect(answer.exitCode == 0, "\(answer.message)")
        let isHead = question.method == "HEAD"
        return SecondOpinion(
            status: answer.status,
            fields: answer.headers.filter { isCompared($0.name) }.map {
                Field(name: $0.name, value: $0.value)
            },
            // curl writes the head of an answer to HEAD where the body would go.
            body: isHead ? [] : answer.body)
    }

    /// What Martlet says.
    static func martlet(_ question: Question, _ session: HTTPSession) async throws -> SecondOpinion {
        let method = try #require(HTTPRequest.Method(question.method))
        var headers = HTTPFields()
        for header in question.headers {
            headers.append(HTTPField(name: try #require(HTTPField.Name(header.name)), value: header.value))
        }
        // Codings that the caller asks for by hand are not undone, by either client.
        var options = RequestOptions()
        options.decompresses = false
        options.redirects = .doNotFollow
        let answer = try await session.send(
            HTTPRequest(method: method, url: question.url, headers: headers), options: options)
        let fields = Array(answer.rawHead.fields) + Array(answer.rawTrailers ?? FieldBlock())
        return SecondOpinion(
            status: answer.response.status.code,
            fields: fields.filter { isCompared($0.name) }.map { Field(name: $0.name, value: $0.value) },
            body: answer.body)
    }
}
