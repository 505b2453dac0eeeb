import Synchronization

/// A stage that sends credentials, and replies to challenges of origins, as ``AuthenticationMachine`` decides.
package final class AuthenticationStage: CallStage {
    private struct State {
        var flow: AuthenticationFlow
        /// Whether the server accepted a request whose body was withheld, and so requires no credentials.
        var hasProbed = false
    }

    private let progress: CallProgress
    /// The lock on the flow. A middleware that the call no longer waits for may run the stage concurrently.
    private let state: Mutex<State>

    /// Creates the stage of a call whose credentials or delegate can reply to a challenge.
    package init(_ sources: CredentialSources, _ call: Call, _ progress: CallProgress) {
        var sources = sources
        if let observer = call.observer { observer.addDelegate(to: &sources) }
        self.progress = progress
        state = Mutex(
            State(
                flow: AuthenticationFlow(
                    AuthenticationMachine(
                        party: .origin, sources: sources, memory: progress.core.authentication,
                        firstOrigin: call.url.origin,
                        sendsCredentialsCrossOrigin: call.redirectPolicy.sendsCredentialsCrossOrigin), progress.userCode
                )))
    }

    package func answer(_ call: Call, _ next: CallNext) async throws -> StreamedResponse {
        var call = call
        while true {
            var (flow, hasProbed) = state.withLock { ($0.flow, $0.hasProbed) }
            let request = try await prepared(call, &flow, hasProbed)
            state.withLock { $0.flow = flow }
            let answer = try await next(request)
            do {
                let isChallenged = try await isChallenged(by: answer, call, &flow)
                let isProbe = request.supplement?.withholdsBody == true
                let probed = !isChallenged && isProbe && answer.head.status < 300
                state.withLock { state in
                    state.flow = flow
                    if probed { state.hasProbed = true }
                }
                guard isChallenged || probed else { return answer }
                await progress.give(up: answer, reason: .challenge)
                call = progress.renewed(call)
            } catch {
                answer.finish()
                throw error
            }
        }
    }

    /// Returns the request with the credentials to send.
    private func prepared(_ call: Call, _ flow: inout AuthenticationFlow, _ hasProbed: Bool) async throws -> Call {
        let asked = call.authenticated
        let authorization: [UInt8]?
        do { authorization = try await flow.value(for: asked)?.bytes } catch { throw failure(error, call) }
        return call.supplemented { supplement in
            supplement.authorization = authorization
            supplement.identity = flow.machine.identity(for: asked)
            // The challenge should come before the body is sent, because the body may be readable only once.
            supplement.withholdsBody = !hasProbed && call.mayWithholdBody && flow.machine.probes(asked)
            supplement.expectsChallenge =
                !supplement.withholdsBody && call.shouldExpectContinue && flow.machine.expectsChallenge(asked)
        }
    }

    private func isChallenged(by answer: StreamedResponse, _ call: Call, _ flow: inout AuthenticationFlow) async throws
        -> Bool
    {
        // A stored response proves nothing about this request, and its `nextnonce` is old (RFC 7616 §3.5).
        guard answer.head.status == 401 || answer.isMadeForCall else { return false }
        let exchange = answer.channel.heldExchange
        var authenticated = call.authenticated
        if answer.head.status == 401 {
            if flow.callsUserCode || progress.observer?.delegate != nil { await progress.readAhead(answer) }
            authenticated.isRepeatable = try await progress.isRepeatable(call, holding: exchange)
        }
        do {
            return try await flow.isResent(
                authenticated,
                after: AuthenticationResponse(status: answer.head.status, fields: answer.head.fields, party: .origin),
                holding: exchange)
        } catch { throw failure(error, call, after: answer) }
    }

    /// Returns the error of a call whose credentials could not be obtained; errors of the program unchanged.
    private func failure(_ error: any Error, _ call: Call, after answer: StreamedResponse? = nil) -> any Error {
        let sent = progress.sentCount
        func failed(_ code: HTTPError.Code, _ message: String, _ cause: any Error) -> HTTPError {
            call.error(
                code, answer == nil ? .preparing : .processingResponse, message, wasSent: sent > 0,
                attempts: max(1, sent), underlying: cause, exchange: answer?.exchange(with: []))
        }
        return switch error {
        case let error as AuthenticationError: failed(.authenticationFailed, error.description, error)
        case let error as CredentialsError: failed(.invalidRequest, error.description, error)
        case let error as ProviderError:
            failed(.authenticationFailed, "\(error.function) failed: \(error.cause)", error.cause)
        default: error
        }
    }
}

/// The error of a request that a token provider or a handler made. It names that request, and not that of the call.
private struct ProviderError: Error {
    let function: String
    let cause: HTTPError
}

/// A flow that executes the decisions of the machine: it calls the handler, and fetches tokens.
///
/// No lock is held while a handler or a provider runs, so either may make calls.
package struct AuthenticationFlow {
    package private(set) var machine: AuthenticationMachine
    /// The runner of handlers and providers for a call; `nil` to run them in the current task.
    private let userCode: UserCode?

    package init(_ machine: AuthenticationMachine, _ userCode: UserCode? = nil) {
        (self.machine, self.userCode) = (machine, userCode)
    }

    /// Returns the value of the field to send; `nil` for none.
    ///
    /// - Throws: ``CredentialsError``; any error of a token provider; `CancellationError`.
    package mutating func value(for request: AuthenticatedRequest) async throws -> AuthorizationValue? {
        switch try machine.prepare(request) {
        case .none: return nil
        case .value(let value): return value
        case .fetchToken: break
        }
        guard let tokens = machine.sources.tokens else { return nil }
        let token = try await run("the provider of the bearer token", .preparing) { try await tokens.token() }
        machine.received(token: token)
        guard case .value(let value) = try machine.prepare(request) else { return nil }
        return value
    }

    /// Whether a handler or a token provider may reply to a challenge.
    var callsUserCode: Bool { machine.sources.handler != nil || machine.sources.tokens != nil }

    /// Decides whether the request is sent again after a response, with the new value of ``value(for:)``.
    ///
    /// - Throws: ``AuthenticationError`` for a server that failed to authenticate itself; ``CredentialsError``; any
    ///   error of a handler or a token provider; `CancellationError`.
    package mutating func isResent(
        _ request: AuthenticatedRequest, after answer: AuthenticationResponse, holding exchange: Exchange? = nil
    ) async throws -> Bool {
        var decision = machine.received(answer, to: request)
        while true {
            switch decision {
            case .deliver: return false
            case .resend: return true
            case .reject(let error): throw error
            case .ask(let challenge):
                let handler = machine.sources.handler
                let credentials = try await run("the authentication handler", .processingResponse, exchange) {
                    try await handler?(challenge)
                }
                decision = try machine.received(credentials: credentials, for: request)
            case .refresh(let rejected):
                guard let tokens = machine.sources.tokens else { return false }
                let token = try await run("the refresh of the bearer token", .processingResponse, exchange) {
                    try await tokens.refresh(after: rejected)
                }
                decision = machine.received(token: token, after: rejected, for: request)
            }
        }
    }

    private func run<Value: Sendable>(
        _ name: String, _ phase: HTTPError.Phase, _ exchange: Exchange? = nil,
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        guard let userCode else { return try await body() }
        return try await userCode.run(name, phase, holding: exchange, sentCount: phase == .preparing ? 0 : 1) {
            do { return try await body() } catch let error as HTTPError {
                throw ProviderError(function: name, cause: error)
            }
        }
    }
}

extension Call {
    /// The properties of the request that authentication needs. An `Authorization` before this stage comes from the
    /// caller or from the session's header fields.
    fileprivate var authenticated: AuthenticatedRequest {
        let known: AuthenticatedBody =
            switch body.storage {
            case .none: .bytes([])
            case .bytes(let bytes) where body.compression == nil: .bytes(bytes)
            default: .unknown
            }
        return AuthenticatedRequest(
            origin: url.origin, method: method.rawValue, target: serverTarget, body: known, isRepeatable: body.isWhole,
            hasOwnField: sentFields.contains("authorization"))
    }

    /// Whether the body should wait for the challenge: it can be read only once, or is longer than 1 MiB, as in curl.
    fileprivate var shouldExpectContinue: Bool {
        guard body.isPresent else { return false }
        return body.replay == .once || body.length.map { $0 > 1 << 20 } ?? true
    }

    /// Whether the body may be withheld: the caller has set no field for its framing.
    fileprivate var mayWithholdBody: Bool {
        body.isPresent && !fields.contains(.contentLength) && !fields.contains(.transferEncoding)
            // A server may switch protocols after the first request.
            && !options.acceptsUpgrade
    }
}
