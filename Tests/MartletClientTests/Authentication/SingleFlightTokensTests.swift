@testable import MartletCredentials
import MartletTesting
import MartletTestSupport
import Synchronization
import Testing

@testable import MartletAuthentication
@testable import MartletCore

/// A provider of the tokens `t0`, `t1` and so on, which counts its calls.
final class CountingTokens: TokenProvider {
    struct Rejected: Error {}

    private struct State {
        var tokens = 0
        var refreshes = 0
        var failures = 0
        var isCancelled = false
    }

    private let state: Mutex<State>
    /// The event that a refresh waits for.
    private let gate: Promise<Void>?

    init(gate: Promise<Void>? = nil, failures: Int = 0) {
        self.gate = gate
        state = Mutex(State(failures: failures))
    }

    /// The numbers of calls of `token()` and of `refresh(after:)`.
    var counts: [Int] { state.withLock { [$0.tokens, $0.refreshes] } }
    /// Whether a refresh ran in a cancelled task.
    var sawCancellation: Bool { state.withLock { $0.isCancelled } }

    func token() async throws -> String {
        state.withLock { $0.tokens += 1 }
        return "t0"
    }

    func refresh(after token: String) async throws -> String {
        state.withLock { $0.refreshes += 1 }
        try await gate?.value
        return try state.withLock { state in
            if Task.isCancelled { state.isCancelled = true }
            if state.failures > 0 {
                state.failures -= 1
                throw Rejected()
            }
            return "t\(state.refreshes)"
        }
    }
}

@Suite("Single-flight tokens", .timeLimit(.minutes(20)))
struct SingleFlightTokensTests {
    @Test("A hundred concurrent rejections refresh the token once, and all callers get the new token")
    func hundred() async throws {
        let gate = Promise<Void>()
        let provider = CountingTokens(gate: gate)
        let tokens = SingleFlightTokens(provider)
        let old = try await tokens.token()
        let started = Counter()
        let fresh = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<100 {
                group.addTask {
                    started.add()
                    return try await tokens.refresh(after: old)
                }
            }
            _ = await eventually { started.count == 100 && provider.counts[1] == 1 }
            gate.settle(.success(()))
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(fresh == Array(repeating: "t1", count: 100))
        #expect(provider.counts == [1, 1])
        #expect(try await tokens.token() == "t1")
    }

    @Test("A rejection of an older token returns the current token without a refresh")
    func older() async throws {
        let provider = CountingTokens()
        let tokens = SingleFlightTokens(provider)
        #expect(try await tokens.token() == "t0")
        #expect(try await tokens.refresh(after: "t0") == "t1")
        #expect(try await tokens.refresh(after: "t0") == "t1")
        #expect(provider.counts == [1, 1])
        #expect(try await tokens.refresh(after: "t1") == "t2")
    }

    @Test("A cancelled caller stops waiting, and the refresh continues for the others")
    func cancelled() async throws {
        let gate = Promise<Void>()
        let provider = CountingTokens(gate: gate)
        let tokens = SingleFlightTokens(provider)
        let first = Task { try await tokens.refresh(after: "t0") }
        _ = await eventually { provider.counts[1] == 1 }
        let second = Task { try await tokens.refresh(after: "t0") }
        first.cancel()
        await #expect(throws: CancellationError.self) { try await first.value }
        gate.settle(.success(()))
        #expect(try await second.value == "t1")
        #expect(provider.counts == [0, 1] && !provider.sawCancellation)
    }

    @Test("A failed refresh fails for its callers, and the next call starts a new refresh")
    func failure() async throws {
        let gate = Promise<Void>()
        let provider = CountingTokens(gate: gate, failures: 1)
        let tokens = SingleFlightTokens(provider)
        let first = Task { try await tokens.refresh(after: "t0") }
        _ = await eventually { provider.counts[1] == 1 }
        let waiting = Task { try await tokens.token() }
        gate.settle(.success(()))
        await #expect(throws: CountingTokens.Rejected.self) { try await first.value }
        // A caller that waited for the failed refresh gets its error. A later caller fetched for itself.
        let others = await waiting.result
        if case .success(let token) = others { #expect(token == "t0") }
        #expect(try await tokens.refresh(after: "t0") == "t2")
        #expect(provider.counts[1] == 2)
    }

    @Test("A token that is invalidated during its refresh is returned to its waiters and not stored")
    func invalidated() async throws {
        let gate = Promise<Void>()
        let provider = CountingTokens(gate: gate)
        let tokens = SingleFlightTokens(provider)
        async let fetched = tokens.refresh(after: "t0")
        _ = await eventually { provider.counts[1] == 1 }
        await tokens.invalidate()
        gate.settle(.success(()))
        #expect(try await fetched == "t1")
        #expect(try await tokens.token() == "t0")
    }

    @Test("A call sends a token, refreshes it after a 401, and later calls use the new token")
    func call() async throws {
        let provider = CountingTokens()
        let tokens = SingleFlightTokens(provider)
        let settings = AuthenticationSettings(tokens: tokens)
        var scene = AuthenticationScene(settings)
        #expect(try await scene.sent("http://a/") == "Bearer t0")
        #expect(try await scene.isResent("http://a/", after: #"Bearer error="invalid_token""#))
        #expect(try await scene.sent("http://a/") == "Bearer t1")
        try await scene.accept("http://a/")
        var later = AuthenticationScene(settings)
        #expect(try await later.sent("http://a/") == "Bearer t1")
        #expect(provider.counts == [1, 1])
    }

    @Test("A server that rejects every token is sent at most three tokens")
    func allRejected() async throws {
        let provider = CountingTokens()
        var scene = AuthenticationScene(AuthenticationSettings(tokens: SingleFlightTokens(provider)))
        var rounds = 1
        _ = try await scene.sent("http://a/")
        while rounds < 20, try await scene.isResent("http://a/") {
            rounds += 1
            #expect(try await scene.sent("http://a/") != nil)
        }
        #expect(rounds == 3 && provider.counts == [1, 2])
        #expect(try await scene.sent("http://a/") == nil)
    }

    @Test("A refresh that returns the rejected token ends the attempts")
    func sameAgain() async throws {
        struct Stuck: TokenProvider {
            func token() async throws -> String { "t" }
            func refresh(after token: String) async throws -> String { token }
        }
        var scene = AuthenticationScene(AuthenticationSettings(tokens: SingleFlightTokens(Stuck())))
        #expect(try await scene.sent("http://a/") == "Bearer t")
        #expect(try await !scene.isResent("http://a/", after: "Bearer"))
    }
}
