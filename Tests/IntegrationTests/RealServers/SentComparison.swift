import Martlet
import MartletTesting
import Testing

/// Sends the same requests by curl and by Martlet to two recording origins, and compares the records.
struct SentComparison: Sendable {
    /// A response of an origin: `other` is the address of the other origin.
    typealias StreamedResponse = @Sendable (_ request: OriginRequest, _ other: String) -> OriginResponse

    /// The addresses of the two origins.
    struct Place: Sendable {
        /// The first address: `127.0.0.1:` and its port.
        let first: String
        /// The second address, in the same form.
        let second: String

        /// The URL of a path on the first origin.
        func url(_ path: String) -> String { "http://\(first)\(path)" }
    }

    /// The allowed differences besides ``SentDifference/always``.
    var allowed: Set<SentDifference> = []
    /// Normalizes the parts of a request that cannot be compared as they are.
    var mask: @Sendable (inout SentRequest) -> Void = { _ in }

    /// Sends the requests by both clients.
    /// - Parameters:
    ///   - count: The number of requests that each client has to make, to both origins together.
    ///   - options: Returns curl's options and the URL, for the addresses of the origins.
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
