import Martlet
import MartletTesting
import Testing

/// Asks the same by curl and by Martlet, of two origins that write down what comes, and compares what came.
struct SentComparison: Sendable {
    /// An origin's answer: `other` is the address of the other origin.
    typealias StreamedResponse = @Sendable (_ request: OriginRequest, _ other: String) -> OriginResponse

    /// Where the two origins are.
    struct Place: Sendable {
        /// `127.0.0.1:` and the port of the first.
        let first: String
        /// The same of the second.
        let second: String

        /// The URL of a path at the first.
        func url(_ path: String) -> String { "http://\(first)\(path)" }
    }

    /// In what the requests may differ besides ``SentDifference/always``.
    var allowed: Set<SentDifference> = []
    /// What is compared of a request in another form.
    var mask: @Sendable (inout SentRequest) -> Void = { _ in }

    /// Asks by both.
    /// - Parameters:
    ///   - count: How many requests each of them has to make, at both origins together.
    ///   - options: curl's, and the URL, for where the origins are.
    func expectSame(
        requests count: Int, answer: @escaping StreamedResponse, curl options: (Place) -> [String],
        martlet ask: @Sendable (Place) async throws -> HTTPExchange,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let (log, otherLog) = (RequestLog(), RequestLog())
        try await TestOrigin.withOrigin { request in
            try await otherLog.record(request)
            return .text("other")
        } run: { other async throws in
            let otherURL = other.url("/elsewhere")
            try await TestOrigin.withOrigin { request in
                try await log.record(request)
                return answer(request, otherURL)
            } run: { origin async throws in
                let place = Place(first: "127.0.0.1:\(origin.port)", second: "127.0.0.1:\(other.port)")
                _ = try await Curl.run(options(place))
                let theirs = (log.take() + otherLog.take()).map(comparable)
                _ = try? await ask(place)
                let ours = (log.take() + otherLog.take()).map(comparable)
                #expect(theirs.count == count, "curl: \(theirs)", sourceLocation: sourceLocation)
                #expect(ours == theirs, sourceLocation: sourceLocation)
            }
        }
    }

    private func comparable(_ request: SentRequest) -> SentRequest {
        var request = request
        for difference in allowed.union(SentDifference.always) { difference.remove(from: &request) }
        mask(&request)
        return request
    }
}
