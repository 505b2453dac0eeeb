import MartletCredentials
package import MartletConnections
import Synchronization

/// Runs what the machine decides: asks the handler, fetches tokens. One for each call, and for each of its two parties.
///
/// No lock is held while a handler or a provider runs, so either may make calls of its own.
package struct AuthenticationFlow {
    /// What it runs.
    package private(set) var machine: AuthenticationMachine
    /// Runs handlers and providers for a call; `nil` to run them in the task at hand.
    private let userCode: UserCode?

    /// A flow of a machine.
    package init(_ machine: AuthenticationMachine, _ userCode: UserCode? = nil) {
        self.machine = machine
        self.userCode = userCode
    }

    /// The value of the field that a request is sent with; `nil` for none.
    ///
    /// - Throws: ``CredentialsError``; what a token provider throws; `CancellationError`.
    package mutating func value(for request: AuthenticatedRequest) async throws -> AuthorizationValue? {
        switch try machine.prepare(request) {
        case .none: return nil
        case .value(let value): return value
        case .fetchToken: break
        }
        guard let tokens = machine.sources.tokens else { return nil }
        let token = try await run("the token provider's token()", .preparing) { try await tokens.token() }
        machine.received(token: token)
        guard case .value(let value) = try machine.prepare(request) else { return nil }
        return value
    }

    /// Whether a challenge may be answered by a handler or a token provider.
    package var asksProgram: Bool { machine.sources.handler != nil || machine.sources.tokens != nil }

    /// Who calls, where what ``value(for:)`` gave is another for each request of theirs.
    package func identity(for request: AuthenticatedRequest) -> String? { machine.identity(for: request) }

    /// Whether a request for which ``value(for:)`` had nothing will most likely be asked for it.
    package func expectsChallenge(_ request: AuthenticatedRequest) -> Bool {
        machine.expectsChallenge(request)
    }

    /// Whether such a request is sent without its body first.
    package func probes(_ request: AuthenticatedRequest) -> Bool { machine.probes(request) }

    /// Whether a request is to be sent again after a response, with what ``value(for:)`` then gives; `false` when the
    /// response is the call's answer.
    ///
    /// - Throws: ``AuthenticationError`` for a server that failed to prove itself; ``CredentialsError``; what a handler or a
    ///   token provider throws; `CancellationError`.
    package mutating func isResent(
        _ request: AuthenticatedRequest, after answer: AuthenticationAnswer, holding exchange: Exchange? = nil
    ) async throws -> Bool {
        var decision = machine.received(answer, to: request)
        while true {
            switch decision {
            case .deliver: return false
            case .resend: return true
            case .refuse(let error): throw error
            case .ask(let challenge):
                let handler = machine.sources.handler
                let credentials = try await run("the authentication handler", .evaluating, exchange) {
                    try await handler?(challenge)
                }
                decision = try machine.received(credentials: credentials, for: request)
            case .refresh(let refused):
                guard let tokens = machine.sources.tokens else { return false }
                let token = try await run("the token provider's refresh(after:)", .evaluating, exchange) {
                    try await tokens.refresh(after: refused)
                }
                decision = machine.received(token: token, after: refused)
            }
        }
    }

    private func run<Value: Sendable>(
        _ name: String, _ phase: HTTPError.Phase, _ exchange: Exchange? = nil,
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        guard let userCode else { return try await body() }
        return try await userCode.run(name, phase, holding: exchange, body)
    }
}
