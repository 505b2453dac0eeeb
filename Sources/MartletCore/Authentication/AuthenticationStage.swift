import MartletCredentials
import MartletConnections
import MartletWire
import Synchronization

/// Sends credentials, and answers challenges of origins, as ``AuthenticationMachine`` decides.
package final class AuthenticationStage: CallStage {
    private struct State {
        var flow: AuthenticationFlow
        /// Whether the server accepted a request without its body, and so asks for no credentials.
        var hasProbed = false
    }

    private let progress: CallProgress
    /// Guards the flow between two requests: taken by this stage, also when a middleware runs that the call no longer waits for.
    private let state: Mutex<State>

    /// The stage of a call whose credentials, or whose delegate, can answer a challenge.
    package init(_ sources: CredentialSources, _ call: Call, _ progress: CallProgress) {
        var sources = sources
        if let observer = call.observer { observer.addDelegate(to: &sources) }
        self.progress = progress
        state = Mutex(
            State(
                flow: AuthenticationFlow(
                    AuthenticationMachine(
                        party: .origin, sources: sources,
                        memory: progress.core.state { AuthenticationMemory() }, firstOrigin: call.url.origin,
                        trustsOtherOrigins: call.redirectPolicy.trustsOtherOrigins), progress.userCode)))
    }

    package func answer(_ call: Call, _ next: CallNext) async throws -> Answer {
        var call = call
        while true {
            var (flow, hasProbed) = state.withLock { ($0.flow, $0.hasProbed) }
            let request: Call
            do {
                request = try await prepared(call, &flow, hasProbed)
            } catch let error as CredentialsError {
                throw failure(error, call)
            }
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

    /// The request with the credentials that it is sent with.
    private func prepared(
        _ call: Call, _ flow: inout AuthenticationFlow, _ hasProbed: Bool
    ) async throws -> Call {
        let asked = call.authenticated
        let authorization = try await flow.value(for: asked)?.bytes
        return call.supplemented { supplement in
            supplement.authorization = authorization
            supplement.identity = flow.identity(for: asked)
            // The challenge should come before the body is sent, which may be readable only once.
            supplement.withholdsBody = !hasProbed && call.mayWithholdBody && flow.probes(asked)
            supplement.asksFirst =
                !supplement.withholdsBody && call.isWorthAsking && flow.expectsChallenge(asked)
        }
    }

    private func isChallenged(
        by answer: Answer, _ call: Call, _ flow: inout AuthenticationFlow
    ) async throws -> Bool {
        let exchange = answer.channel.heldExchange
        var authenticated = call.authenticated
        if answer.head.status == 401 {
            if flow.asksProgram || progress.observer?.delegate != nil { await progress.readAhead(answer) }
            authenticated.isRepeatable = try await progress.isRepeatable(call, holding: exchange)
        }
        do {
            return try await flow.isResent(
                authenticated,
                after: AuthenticationAnswer(
                    status: answer.head.status, fields: answer.head.fields, party: .origin),
                holding: exchange)
        } catch let error as AuthenticationError {
            throw HTTPError(
                .authenticationFailed, phase: .evaluating, message: error.description, wasSent: true,
                origin: call.url.origin.description, attempts: progress.sentCount, underlying: error)
        } catch let error as CredentialsError {
            throw failure(error, call)
        }
    }

    private func failure(_ error: CredentialsError, _ call: Call) -> HTTPError {
        HTTPError(
            .invalidRequest, phase: .preparing, message: error.description, wasSent: progress.sentCount > 0,
            origin: call.url.origin.description, attempts: max(1, progress.sentCount), underlying: error)
    }
}

extension Call {
    /// The properties of the request that authentication needs.
    fileprivate var authenticated: AuthenticatedRequest {
        let known: AuthenticatedBody =
            switch body.storage {
            case .none: .bytes([])
            case .bytes(let bytes): .bytes(bytes)
            default: .unknown
            }
        return AuthenticatedRequest(
            origin: url.origin, method: method.rawValue, target: serverTarget, body: known,
            isRepeatable: body.isWhole, hasOwnField: hasOwnAuthorization)
    }

    /// Whether the `Authorization` field is the caller's: the request's own, or one of the session's defaults that is sent.
    private var hasOwnAuthorization: Bool {
        fields.contains(.authorization)
            || (settings.configuration.headers.contains(.authorization)
                && !options.omittedFields.contains(.authorization))
    }

    /// Whether the body should be sent only once: it can be read only once, or is longer than 1 MiB (the bound of curl), or has
    /// no known length.
    fileprivate var isWorthAsking: Bool {
        guard body.isPresent else { return false }
        return body.replay == .once || body.length.map { $0 > 1 << 20 } ?? true
    }

    /// Whether there is a body that may be held back: the caller does not frame it.
    fileprivate var mayWithholdBody: Bool {
        body.isPresent && !fields.contains(.contentLength) && !fields.contains(.transferEncoding)
    }
}
