import Testing

@testable import MartletCaching
@testable import MartletCore
@testable import MartletDiagnostics

@Suite("Retry rules and delays")
struct RetryRuleTests {
    private static func delay(
        _ outcome: RetryRule.Outcome, policy: RetryPolicy = .transient(), attempt: Int = 1,
        timeouts408: Int = 0,
        elapsed: Duration = .zero, random: Double = 1, isIdempotent: Bool = true,
        isReplayable: Bool = true
    ) -> Duration? {
        RetryRule(policy: policy, isIdempotent: isIdempotent, isReplayable: isReplayable).delay(
            after: outcome, attempt: attempt, timeouts408: timeouts408, elapsed: elapsed,
            random: random)
    }

    private static func failure(
        _ code: HTTPError.Code, wasSent: Bool = true, timeout: HTTPError.Timeout? = nil
    )
        -> RetryRule.Outcome
    {
        .failure(HTTPError(code, phase: .awaitingHead, message: "x", wasSent: wasSent, timeout: timeout))
    }

    @Test("The policy .never never retries")
    func never() {
        #expect(RetryRuleTests.delay(.status(503, retryAfter: nil), policy: .never) == nil)
        #expect(RetryRuleTests.delay(RetryRuleTests.failure(.connectFailed), policy: .never) == nil)
    }

    @Test("Transient statuses are retried and others are returned", arguments: [408, 429, 502, 503, 504])
    func statuses(_ status: Int) {
        #expect(RetryRuleTests.delay(.status(status, retryAfter: nil)) != nil)
        for other in [200, 301, 400, 401, 404, 500, 501] {
            #expect(RetryRuleTests.delay(.status(other, retryAfter: nil)) == nil)
        }
    }

    @Test("The statuses of a transient policy replace the default ones")
    func chosenStatuses() {
        let policy = RetryPolicy.transient(statuses: [429, 500])
        #expect(RetryRuleTests.delay(.status(429, retryAfter: nil), policy: policy) != nil)
        #expect(RetryRuleTests.delay(.status(500, retryAfter: nil), policy: policy) != nil)
        #expect(RetryRuleTests.delay(.status(503, retryAfter: nil), policy: policy) == nil)
        #expect(policy.maximumAttempts == 3 && policy.budget == 0.2)
        #expect(RetryPolicy.transient().statuses == [408, 429, 502, 503, 504])
        #expect(RetryPolicy.never.statuses == RetryPolicy.transient().statuses)
    }

    @Test("408 is retried once")
    func requestTimeout() {
        #expect(RetryRuleTests.delay(.status(408, retryAfter: nil), attempt: 2, timeouts408: 1) == nil)
    }

    @Test("The number of attempts is limited")
    func attempts() {
        #expect(RetryRuleTests.delay(.status(503, retryAfter: nil), attempt: 2) != nil)
        #expect(RetryRuleTests.delay(.status(503, retryAfter: nil), attempt: 3) == nil)
    }

    @Test("The delay is a random part of a span that doubles up to the maximum")
    func backoff() {
        let policy = RetryPolicy.transient(
            maximumAttempts: 100, backoff: .exponential(from: .milliseconds(200), upTo: .seconds(1)))
        func span(_ attempt: Int, _ random: Double) -> Duration? {
            RetryRuleTests.delay(
                .status(503, retryAfter: nil), policy: policy, attempt: attempt, random: random)
        }
        #expect(span(1, 1) == .milliseconds(200))
        #expect(span(2, 1) == .milliseconds(400))
        #expect(span(3, 1) == .milliseconds(800))
        #expect(span(4, 1) == .seconds(1))
        #expect(span(99, 1) == .seconds(1))
        #expect(span(1, 0) == .zero)
        #expect(span(3, 0.5) == .milliseconds(400))
    }

    @Test("Delays that double very often do not overflow")
    func overflow() {
        let policy = RetryPolicy.transient(
            maximumAttempts: .max,
            backoff: .exponential(from: .seconds(Int64.max / 4), upTo: .seconds(Int64.max / 2)))
        #expect(
            RetryRuleTests.delay(.status(503, retryAfter: nil), policy: policy, attempt: 1_000_000) != nil)
    }

    @Test("Retry-After replaces the backoff up to the maximum delay")
    func retryAfter() throws {
        func wait(_ status: Int, _ value: String) -> Duration? {
            RetryRuleTests.delay(.status(status, retryAfter: RetryAfter(Array(value.utf8), now: 784_111_777)))
        }
        #expect(wait(503, "7") == .seconds(7))
        #expect(wait(503, "00000000000000000007") == .seconds(7) && wait(503, "0000") == .zero)
        #expect(wait(429, "Sun, 06 Nov 1994 08:49:47 GMT") == .seconds(10))
        #expect(wait(503, "1000000000") == .seconds(60))
        #expect(wait(503, "99999999999999999999999999") == .seconds(60))
        #expect(wait(503, "Sun, 06 Nov 1984 08:49:47 GMT") == .zero)
        // An invalid field does not change the backoff, and 502 ignores the field.
        #expect(wait(503, "-1") == .milliseconds(200))
        #expect(wait(503, "soon") == .milliseconds(200))
        #expect(wait(502, "7") == .milliseconds(200))
    }

    @Test("No attempt starts after the policy's time limit")
    func timeLimit() {
        var policy = RetryPolicy.transient(backoff: .constant(.seconds(1)))
        policy.timeLimit = .seconds(10)
        let outcome = RetryRule.Outcome.status(503, retryAfter: nil)
        #expect(RetryRuleTests.delay(outcome, policy: policy, elapsed: .seconds(8)) == .seconds(1))
        #expect(RetryRuleTests.delay(outcome, policy: policy, elapsed: .seconds(9)) == nil)
    }

    @Test("A request that may have been sent is retried only if it is safe")
    func safety() {
        #expect(RetryRuleTests.delay(RetryRuleTests.failure(.connectionLost), isIdempotent: false) == nil)
        #expect(
            RetryRuleTests.delay(RetryRuleTests.failure(.connectFailed, wasSent: false), isIdempotent: false)
                != nil)
        #expect(RetryRuleTests.delay(.status(503, retryAfter: nil), isIdempotent: false) == nil)
        #expect(
            RetryRuleTests.delay(RetryRuleTests.failure(.connectFailed, wasSent: false), isReplayable: false)
                == nil)
        var policy = RetryPolicy.transient()
        policy.retriesNonIdempotentMethods = true
        #expect(
            RetryRuleTests.delay(RetryRuleTests.failure(.connectionLost), policy: policy, isIdempotent: false)
                != nil)
    }

    @Test(
        "Errors that a retry cannot fix are not retried",
        arguments: [
            HTTPError.Code.protocolViolation, .limitExceeded, .bodyTooLarge, .invalidURL, .fileFailed,
        ])
    func lasting(_ code: HTTPError.Code) {
        #expect(RetryRuleTests.delay(RetryRuleTests.failure(code)) == nil)
    }

    @Test("A TLS connection that breaks is retried if it is safe, and a failed handshake is not")
    func brokenTLS() {
        for phase in [HTTPError.Phase.sending, .awaitingHead, .receivingBody] {
            let error = HTTPError(.tlsFailed, phase: phase, message: "x", wasSent: true)
            #expect(RetryRuleTests.delay(.failure(error)) != nil, "\(phase)")
            #expect(RetryRuleTests.delay(.failure(error), isIdempotent: false) == nil, "\(phase)")
        }
        let rejected = HTTPError(.tlsFailed, phase: .tlsHandshake, message: "x", wasSent: false)
        #expect(RetryRuleTests.delay(.failure(rejected)) == nil)
        var cut = rejected
        cut.underlying = TLSError(.truncated)
        #expect(RetryRuleTests.delay(.failure(cut)) != nil, "it ended, as by a reset, and was not rejected")
        // TLS 1.3 reports this after the handshake.
        var unknown = HTTPError(.tlsFailed, phase: .awaitingHead, message: "x", wasSent: true)
        unknown.underlying = TLSError(.clientCertificateRequired)
        #expect(RetryRuleTests.delay(.failure(unknown)) == nil)
    }

    @Test("The total timeout ends the call, and other timeouts end an attempt")
    func clocks() {
        #expect(RetryRuleTests.delay(RetryRuleTests.failure(.timedOut, timeout: .total)) == nil)
        #expect(RetryRuleTests.delay(RetryRuleTests.failure(.timedOut, timeout: .unread)) == nil)
        for clock in [HTTPError.Timeout.connect, .head, .idle, .poolWait] {
            #expect(RetryRuleTests.delay(RetryRuleTests.failure(.timedOut, timeout: clock)) != nil)
        }
    }

    @Test("The budget allows ten retries, and then one for every five calls")
    func budget() {
        let budget = RetryBudget()
        for _ in 0..<10 { #expect(budget.withdraw(isUsed: true)) }
        #expect(!budget.withdraw(isUsed: true))
        for _ in 0..<5 { budget.deposit(0.2) }
        #expect(budget.withdraw(isUsed: true))
        #expect(!budget.withdraw(isUsed: true))
    }

    @Test("The saved budget is limited to a hundred retries")
    func budgetLimit() {
        let budget = RetryBudget()
        for _ in 0..<100_000 { budget.deposit(1) }
        var count = 0
        while budget.withdraw(isUsed: true) { count += 1 }
        #expect(count == 100)
    }
}
