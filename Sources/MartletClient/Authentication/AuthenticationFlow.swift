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
        guard let tokens = machine.settings.tokens else { return nil }
        let token = try await run("the token provider's token()", .preparing) { try await tokens.token() }
        machine.received(token: token)
        guard case .value(let value) = try machine.prepare(request) else { return nil }
        return value
    }

    /// Whether a challenge may be answered by a handler or a token provider.
    package var asksProgram: Bool { machine.settings.handler != nil || machine.settings.tokens != nil }

    /// Who calls, where what ``value(for:)`` gave is another for each request of theirs.
    package func identity(for request: AuthenticatedRequest) -> String? {
        machine.identity(for: request)
    }

    /// Whether a request for which ``value(for:)`` had nothing will most likely be asked for it.
    package func expectsChallenge(_ request: AuthenticatedRequest) -> Bool {
        machine.expectsChallenge(request)
    }

    /// Whether such a request is sent without its body first.
    package func probes(_ request: AuthenticatedRequest) -> Bool {
        machine.probes(request)
    }

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
                let handler = machine.settings.handler
                let credentials = try await run("the authentication handler", .evaluating, exchange) {
                    try await handler?(challenge)
                }
                decision = try machine.received(credentials: credentials, for: request)
            case .refresh(let refused):
                guard let tokens = machine.settings.tokens else { return false }
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

/// What a session remembers of the servers and proxies that asked who is calling; its calls and views share it.
package final class AuthenticationMemory: Sendable, CustomReflectable, CustomStringConvertible {
    /// Guards the table, for the time of one look or change.
    private let table = Mutex(AuthenticationTable())

    /// A memory of nothing.
    package init() {}

    /// Looks at the table, or changes it.
    func withTable<Result>(_ body: (inout AuthenticationTable) -> sending Result) -> sending Result {
        table.withLock { body(&$0) }
    }

    /// Nothing of what it remembers.
    package var description: String { "AuthenticationMemory" }
    /// Shows nothing.
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// How a call stands with one origin: what it may use there, what it sent last, and what it sends next.
struct AuthenticationStanding: Sendable {
    /// Where credentials came from.
    enum Source: Hashable, Sendable {
        /// There are none.
        case nothing
        /// The settings, for the origin the call begins at.
        case call
        /// The settings' tokens, for the same.
        case tokens
        /// The settings, for this very origin.
        case origin
        /// A netrc, for this host.
        case netrc
        /// The handler, for this origin.
        case handler

        /// Whether they are for the origin the call begins at, and lost once it was left.
        var isOfTheCall: Bool { self == .call || self == .tokens }
    }

    /// A Digest response that was sent.
    struct SentDigest: Sendable {
        let key: AuthenticationKey
        let realm: [UInt8]
        let nonce: [UInt8]
        let proof: DigestProof
        /// Whether it was sent unasked, with a nonce from an earlier call.
        let isRemembered: Bool
    }

    /// What the last request had.
    enum Sent: Sendable {
        /// Basic or Bearer, as the credentials have it.
        case plain
        /// Basic, for credentials that may be used in any way.
        case basic(AuthenticationKey)
        /// A token of the provider's.
        case token(String)
        case digest(SentDigest)
    }

    /// What the next request gets.
    enum Next: Sendable {
        /// A response to a challenge that was just received.
        case digest(DigestSession, AuthenticationKey, ProtectionSpace)
        /// Basic, for credentials that may be used in any way.
        case basic(AuthorizationValue, AuthenticationKey)
        /// A value that no challenge plays a part in.
        case unasked(AuthorizationValue)
    }

    /// Where the credentials came from.
    var source: Source
    /// The credentials; `nil` when there are none, or they were refused.
    var credentials: Credentials?
    /// What the last request had; `nil` for none.
    var sent: Sent?
    /// What the next request gets; `nil` for what the credentials give by themselves.
    var next: Next?
    /// What the server asked last.
    var challenges: [HTTPChallenge] = []

    init(source: Source, credentials: Credentials? = nil) {
        self.source = source
        self.credentials = credentials
    }
}

/// Whose state it is: that of one party at one place for one user. Nobody else's is ever looked at.
struct AuthenticationKey: Hashable, Sendable {
    /// A server, or a proxy.
    let party: AuthenticationParty
    /// Where it is.
    let origin: HTTPURL.Origin
    /// Who calls.
    let credentials: Credentials
}
