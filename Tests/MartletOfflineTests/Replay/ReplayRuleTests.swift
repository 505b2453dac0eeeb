import MartletURL
import Martlet
import MartletTesting
import Testing

@testable import MartletOffline

/// The consequences of responses and failures: the table of ``ReplayRule``.
@Suite("Replay rule")
struct ReplayRuleTests {
    enum Kind: String, CaseIterable { case keyed, idempotent, neither }

    private func rule(_ kind: Kind) throws -> ReplayRule {
        var request = QueuedRequest(
            id: OfflineID(1), lane: "a", method: kind == .idempotent ? "PUT" : "POST",
            url: try HTTPURL("http://127.0.0.1/"), submitted: 0, expires: 1)
        request.idempotencyKey = kind == .keyed ? "\"k\"" : nil
        return ReplayRule(request, secrets: SecretFields([]))
    }

    private func word(_ decision: ReplayDecision) -> String {
        switch decision {
        case .delivered: "delivered"
        case .later: "later"
        case .unauthorized: "unauthorized"
        case .dead: "dead"
        case .uncertain: "uncertain"
        }
    }

    @Test(
        "Each status has one consequence for requests with a key, idempotent ones, and others",
        arguments: [
            (200, ["delivered", "delivered", "delivered"]), (204, ["delivered", "delivered", "delivered"]),
            (304, ["delivered", "delivered", "delivered"]), (400, ["dead", "dead", "dead"]),
            (401, ["unauthorized", "unauthorized", "unauthorized"]), (403, ["dead", "dead", "dead"]),
            (404, ["dead", "dead", "dead"]), (407, ["later", "later", "later"]),
            (408, ["later", "later", "later"]), (409, ["later", "dead", "dead"]),
            (413, ["dead", "dead", "dead"]), (421, ["later", "later", "later"]),
            (422, ["dead", "dead", "dead"]), (425, ["later", "later", "later"]),
            (429, ["later", "later", "later"]), (500, ["later", "later", "uncertain"]),
            (501, ["dead", "dead", "dead"]), (502, ["later", "later", "uncertain"]),
            (503, ["later", "later", "later"]), (504, ["later", "later", "uncertain"]),
            (505, ["dead", "dead", "dead"]), (507, ["later", "later", "later"]),
            (511, ["later", "later", "later"]), (520, ["later", "later", "uncertain"]),
        ])
    func statuses(status: Int, expected: [String]) async throws {
        let transport = try await TestOrigin.start(handler: .status(status))
        var options = RequestOptions()
        options.validator = .anything
        let answer = try await OfflineScene.session.send(
            HTTPRequest(method: .post, url: transport.url()), options: options)
        #expect(answer.statusCode == status)
        for (kind, word) in zip(Kind.allCases, expected) {
            #expect(self.word(try rule(kind).decision(on: answer, now: 0)) == word, "\(kind)")
        }
        await transport.stop()
    }

    @Test("Without a response, a sent request that must not be repeated is uncertain; all others are retried")
    func failures() throws {
        for kind in Kind.allCases {
            for code in [
                HTTPError.Code.connectFailed, .resolutionFailed, .tlsFailed, .timedOut, .connectionLost,
                .emptyResponse, .protocolViolation, .sessionInvalidated,
            ] {
                for wasSent in [false, true] {
                    let error = HTTPError(code, phase: .sending, message: "", wasSent: wasSent)
                    let expected = wasSent && kind == .neither ? "uncertain" : "later"
                    #expect(word(try rule(kind).decision(on: error, now: 0)) == expected, "\(kind) \(code)")
                }
            }
        }
    }

    @Test("A request that cannot be sent at all is dead")
    func unsendable() throws {
        for code in [HTTPError.Code.invalidURL, .invalidRequest, .redirectRejected, .tooManyRedirects] {
            let error = HTTPError(code, phase: .preparing, message: "no")
            #expect(word(try rule(.keyed).decision(on: error, now: 0)) == "dead", "\(code)")
        }
    }

    @Test("An error from outside the client, such as a middleware's, counts as a missing response")
    func foreignErrors() throws {
        struct Foreign: Error {}
        #expect(word(try rule(.keyed).decision(on: Foreign(), now: 0)) == "later")
        #expect(word(try rule(.neither).decision(on: Foreign(), now: 0)) == "uncertain")
    }
}
