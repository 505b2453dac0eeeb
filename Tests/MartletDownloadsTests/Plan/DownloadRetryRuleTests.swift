import Martlet
import MartletDownloads
import Testing

@Suite("Decision on a failed transfer")
struct DownloadRetryRuleTests {
    @Test(
        "A status is retried, leads back to the original URL, or is final",
        arguments: [
            (408, true, true), (425, true, true), (429, true, true), (500, true, true), (502, true, true),
            (503, true, true), (504, true, true), (501, false, false), (505, false, false),
            (400, false, true), (401, false, true), (403, false, true), (404, false, true),
            (405, false, true), (407, false, false), (410, false, true), (412, false, true),
            (416, false, false), (451, false, true), (499, false, true), (304, false, false),
            (100, false, false),
        ])
    func statuses(_ status: Int, _ passes: Bool, _ isBorneElsewhere: Bool) {
        let here = DownloadRetryRule.action(status: status, retryAfter: .seconds(3), isRedirected: false)
        #expect(here == (passes ? .retry(after: .seconds(3)) : .fail))
        let elsewhere = DownloadRetryRule.action(status: status, retryAfter: nil, isRedirected: true)
        #expect(elsewhere == (passes ? .retry(after: nil) : isBorneElsewhere ? .requestOriginal : .fail))
    }

    @Test(
        "A broken connection is retried; a failed handshake is not",
        arguments: [
            (
                HTTPError.Code.connectionLost, HTTPError.Phase.receivingBody,
                DownloadRetryRule.Action.retry(after: nil)
            ),
            (.truncated, .receivingBody, .retry(after: nil)),
            (.emptyResponse, .awaitingHead, .retry(after: nil)),
            (.connectFailed, .connecting, .retry(after: nil)),
            (.resolutionFailed, .resolving, .retry(after: nil)),
            (.tlsFailed, .receivingBody, .retry(after: nil)), (.tlsFailed, .awaitingHead, .retry(after: nil)),
            (.tlsFailed, .tlsHandshake, .fail), (.proxyFailed, .tunneling, .fail),
            (.protocolViolation, .awaitingHead, .fail), (.diskFull, .receivingBody, .fail),
            (.fileFailed, .receivingBody, .fail), (.tooManyRedirects, .processingResponse, .fail),
            (.sessionInvalidated, .preparing, .fail), (.authenticationFailed, .processingResponse, .fail),
        ])
    func errors(_ code: HTTPError.Code, _ phase: HTTPError.Phase, _ expected: DownloadRetryRule.Action) {
        let error = HTTPError(code, phase: phase, message: "")
        #expect(DownloadRetryRule.action(error, isRedirected: false) == expected)
    }

    @Test(
        "An unreachable redirect target leads back to the original URL, and only the total timeout is final"
    )
    func placesAndClocks() {
        let unreachable = HTTPError(.connectFailed, phase: .connecting, message: "")
        #expect(DownloadRetryRule.action(unreachable, isRedirected: true) == .requestOriginal)
        let lost = HTTPError(.connectionLost, phase: .receivingBody, message: "")
        #expect(DownloadRetryRule.action(lost, isRedirected: true) == .retry(after: nil))
        for clock in [HTTPError.Timeout.idle, .head, .connect, .poolWait, .total] {
            var error = HTTPError(.timedOut, phase: .receivingBody, message: "")
            error.timeout = clock
            #expect(
                DownloadRetryRule.action(error, isRedirected: false)
                    == (clock == .total ? .fail : .retry(after: nil)))
        }
    }

    @Test(
        "Retry-After is respected up to its limit",
        arguments: [
            (Duration.seconds(7), Duration.seconds(7)), (.zero, .zero), (.seconds(-5), .zero),
            (.seconds(120), .seconds(120)), (.seconds(121), .seconds(120)),
            (.seconds(1_000_000_000), .seconds(120)),
            (.seconds(Int64.max), .seconds(120)),
        ])
    func retryAfter(_ asked: Duration, _ expected: Duration) {
        for failures in [1, 5, .max] {
            #expect(DownloadRetryRule.delay(failures, asked: asked, DownloadRetry(), random: 0) == expected)
        }
    }

    @Test("Without Retry-After the delay is random, in a range that doubles up to its limit")
    func fullJitter() {
        let retry = DownloadRetry()
        let spans = (1...9).map { DownloadRetryRule.delay($0, asked: nil, retry, random: 1) }
        #expect(spans == [0.5, 1, 2, 4, 8, 16, 30, 30, 30].map { Duration.seconds($0) })
        for failures in [-1, 0, 1, 4, 100, Int.max] {
            for random in [0, 0.25, 0.999, 1, 7, -1] {
                let delay = DownloadRetryRule.delay(failures, asked: nil, retry, random: random)
                #expect(delay >= .zero && delay <= .seconds(30))
            }
            #expect(DownloadRetryRule.delay(failures, asked: nil, retry, random: 0) == .zero)
        }
        #expect(DownloadRetryRule.delay(3, asked: nil, retry, random: 0.5) == .seconds(1))
    }

    @Test("Ranges that are negative, zero or extremely long do no harm")
    func extremes() {
        let longest = Duration.seconds(Int64.max)
        let spans = [Duration.seconds(-1), .zero, .nanoseconds(1), .seconds(Int64.max / 3), longest]
        for first in spans {
            for last in spans {
                let retry = DownloadRetry(initialDelay: first, maximumDelay: last, maximumRetryAfter: first)
                for failures in [1, 2, 40, 1_000] {
                    let delay = DownloadRetryRule.delay(failures, asked: nil, retry, random: 1)
                    #expect(delay >= .zero)
                    // Extremely long durations are not exact to the second.
                    #expect(delay <= max(last, .zero) || last > .seconds(1_000_000_000))
                    #expect(
                        DownloadRetryRule.delay(failures, asked: last, retry, random: 1) <= max(first, .zero))
                }
            }
        }
    }
}
