@testable import MartletCredentials
@testable import MartletURL
import MartletWire
import Synchronization
import Testing

@testable import MartletAuthentication
@testable import MartletCore

/// Authentication of a call without a network: tests inspect the value to be sent and give responses as literals.
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

    /// Returns the value of the authorization field for the request; `nil` for none.
    mutating func sent(_ request: AuthenticatedRequest) async throws -> String? {
        try await flow.value(for: request).map { String(decoding: $0.bytes, as: UTF8.self) }
    }

    mutating func sent(_ url: String) async throws -> String? {
        try await sent(AuthenticationScene.request(url))
    }

    /// Whether the request is sent again after a response with these fields.
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

    /// Accepts a response with status 200 and an optional Authentication-Info field.
    mutating func accept(_ url: String, _ information: String? = nil) async throws {
        let fields = information.map { [(flow.machine.party.informationField, $0)] } ?? []
        let isResent = try await isResent(AuthenticationScene.request(url), after: 200, fields)
        #expect(!isResent)
    }
}

/// A handler that returns scripted credentials and records its challenges.
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
