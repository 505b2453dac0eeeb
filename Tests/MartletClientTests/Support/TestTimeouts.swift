import Martlet
import MartletTestSupport
import Testing

/// The timeouts of tests. A machine may stall for half a minute at any line, and a test must not fail for that reason.
enum TestTimeouts {
    /// The timeout for an event that is certain, and quick on an idle machine.
    static let long = Duration.seconds(300)
    /// The maximum duration of a wait that everything else would end only after ``long``.
    static let ending = Duration.seconds(150)
}

/// Runs a test that depends on a short duration, with three times the duration until it was long enough.
///
/// On a slow machine, a timeout may expire before a call reaches the phase under test. Only such an outcome is repeated.
/// - Parameters:
///   - first: The duration of the first run.
///   - limit: The test fails instead of a run with this duration or a longer one.
///   - run: Returns whether the duration was long enough for the test to be valid.
func withEnoughTime(
    from first: Duration, upTo limit: Duration = TestTimeouts.ending,
    sourceLocation: SourceLocation = #_sourceLocation, run: (Duration) async throws -> Bool
) async throws {
    var duration = first
    while try await !run(duration) {
        duration *= 3
        try #require(duration < limit, "no duration was long enough", sourceLocation: sourceLocation)
    }
}

extension Timeouts {
    /// Returns timeouts that end only hangs, except those that a test sets. These may expire before the call reaches
    /// the phase under test.
    static func patient(
        poolWait: Duration? = nil, connect: Duration? = TestTimeouts.long, head: Duration? = TestTimeouts.long,
        idle: Duration? = TestTimeouts.long, total: Duration? = nil
    ) -> Timeouts {
        Timeouts(poolWait: poolWait, connect: connect, head: head, idle: idle, unread: TestTimeouts.long, total: total)
    }
}

extension SessionConfiguration {
    /// The default configuration with timeouts that end only hangs.
    static var patient: SessionConfiguration { SessionConfiguration.default.patient() }
}

extension HTTPError.Phase {
    /// Whether a call reaches this phase before another one. A timeout in an earlier phase than the expected one was
    /// too short for the machine.
    func precedes(_ other: HTTPError.Phase) -> Bool {
        let order: [HTTPError.Phase] = [
            .preparing, .waitingForConnection, .resolving, .connecting, .tunneling, .tlsHandshake, .sending,
            .awaitingHead, .receivingBody,
        ]
        guard let place = order.firstIndex(of: self), let end = order.firstIndex(of: other) else {
            return false
        }
        return place < end
    }
}
