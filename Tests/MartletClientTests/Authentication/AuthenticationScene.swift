@testable import MartletCredentials
@testable import MartletURL
import MartletWire
import Synchronization
import Testing

@testable import MartletAuthentication
@testable import MartletCore

/// A call and its servers, without a network: what is sent is looked at, what is answered is a literal.
struct AuthenticationScene {
    var flow: AuthenticationFlow
    let memory: AuthenticationCache

    init(
        _ settings: AuthenticationSettings, party: ChallengeSource = .origin,
        memory: AuthenticationCache = AuthenticationCache(), firstOrigin: HTTPURL.Origin? = nil
    ) {
        self.memory = memory
        flow = AuthenticationFlow(
            AuthenticationMachine(
                party: party, sources: settings.sources, memory: memory,
                nonces: ClientNonceSource { Array("cnonce".utf8) }, firstOrigin: firstOrigin))
    }

    static func request(
        _ url: String, _ method: String = "GET", body: AuthenticatedBody = .bytes([]),
        isRepeatable: Bool = true, hasOwnField: Bool = false
    ) throws -> AuthenticatedRequest {
        let url = try HTTPURL(url)
        return AuthenticatedRequest(
            origin: url.origin, method: method, target: url.requestTarget, body: body,
            isRepeatable: isRepeatable, hasOwnField: hasOwnField)
    }

    /// What the request is sent with.
    mutating func sent(_ request: AuthenticatedRequest) async throws -> String? {
        try await flow.value(for: request).map { String(decoding: $0.bytes, as: UTF8.self) }
    }

    mutating func sent(_ url: String) async throws -> String? {
        try await sent(AuthenticationScene.request(url))
    }

    /// Whether the request is sent again after an answer with these fields.
    mutating func isResent(
        _ request: AuthenticatedRequest, after status: Int, _ fields: [(String, String)] = []
    ) async throws -> Bool {
        try await flow.isResent(
            request,
            after: AuthenticationResponse(
                status: status, fields: FieldBlock(fields), party: flow.machine.party))
    }

    mutating func isResent(_ url: String, after challenges: String...) async throws -> Bool {
        try await isResent(
            AuthenticationScene.request(url), after: flow.machine.party.status,
            challenges.map { (flow.machine.party.challengeField, $0) })
    }

    /// Lets a request through, with what the server says of itself.
    mutating func accept(_ url: String, _ information: String? = nil) async throws {
        let fields = information.map { [(flow.machine.party.informationField, $0)] } ?? []
        let isResent = try await isResent(AuthenticationScene.request(url), after: 200, fields)
        #expect(!isResent)
    }
}

/// What a handler was asked, and what it says.
final class HandlerScript: Sendable {
    private let state: Mutex<(answers: [Credentials?], asked: [AuthenticationChallenge])>

    init(_ answers: [Credentials?]) {
        state = Mutex((answers, []))
    }

    var asked: [AuthenticationChallenge] { state.withLock { $0.asked } }

    var handler: AuthenticationSettings.Handler {
        { challenge in
            self.state.withLock { state in
                state.asked.append(challenge)
                return state.answers.isEmpty ? nil : state.answers.removeFirst()
            }
        }
    }
}
