import MartletCore
import MartletDiagnostics
import MartletStreams
import Testing

@Suite("Reconnection rules of event streams")
struct EventStreamMachineTests {
    private func machine(_ change: (inout EventStreamOptions) -> Void = { _ in }) -> EventStreamMachine {
        var options = EventStreamOptions()
        change(&options)
        return EventStreamMachine(options)
    }

    @Test("A 200 of the right type is accepted with any parameters and in any case")
    func read() {
        var machine = machine()
        #expect(machine.opened(status: 200, contentType: "text/event-stream") == .read)
        #expect(machine.opened(status: 200, contentType: "Text/Event-Stream;charset=utf-8") == .read)
    }

    @Test("A 204 ends the stream without an error")
    func noContent() {
        var machine = machine()
        #expect(machine.opened(status: 204, contentType: nil) == .finish)
    }

    @Test("Another status is rejected", arguments: [201, 206, 301, 401, 404, 500, 503])
    func status(_ status: Int) {
        var machine = machine()
        #expect(machine.opened(status: status, contentType: "text/event-stream") == .rejectStatus(status))
    }

    @Test("Another content type, or none, is rejected")
    func contentType() {
        var machine = machine()
        #expect(machine.opened(status: 200, contentType: "text/html") == .rejectContentType("text/html"))
        #expect(machine.opened(status: 200, contentType: nil) == .rejectContentType(""))
        #expect(machine.opened(status: 200, contentType: "junk") == .rejectContentType("junk"))
    }

    @Test("A stream that ends reconnects after three seconds or after the server's retry time")
    func reconnects() {
        var machine = machine()
        #expect(machine.ended() == .reconnect(after: .seconds(3)))
        machine.read(lastEventID: "", retryMilliseconds: 500)
        #expect(machine.ended() == .reconnect(after: .milliseconds(500)))
        machine.read(lastEventID: "", retryMilliseconds: nil)
        #expect(machine.ended() == .reconnect(after: .milliseconds(500)))
    }

    @Test("The server's retry time is limited to the configured range")
    func bounds() {
        var machine = machine { $0.reconnectionTimeBounds = .seconds(1)...(.seconds(10)) }
        machine.read(lastEventID: "", retryMilliseconds: 0)
        #expect(machine.ended() == .reconnect(after: .seconds(1)))
        machine.read(lastEventID: "", retryMilliseconds: .max)
        #expect(machine.ended() == .reconnect(after: .seconds(10)))
    }

    @Test("The delay doubles up to the limit while connecting fails, and resets when a stream opens")
    func backoff() {
        var machine = machine { $0.backoffLimit = .seconds(20) }
        let waits = (0..<5).map { _ in machine.failed(isTransient: true, jitter: 1) }
        #expect(waits == [3, 6, 12, 20, 20].map { .reconnect(after: .seconds($0)) })
        #expect(machine.opened(status: 200, contentType: "text/event-stream") == .read)
        #expect(machine.failed(isTransient: true, jitter: 1) == .reconnect(after: .seconds(3)))
    }

    @Test("Jitter spreads the delay between the reconnection time and the current backoff")
    func jitter() {
        var machine = machine()
        _ = machine.failed(isTransient: true, jitter: 0)
        #expect(machine.failed(isTransient: true, jitter: 0) == .reconnect(after: .seconds(3)))
        #expect(machine.failed(isTransient: true, jitter: 0.5) == .reconnect(after: .milliseconds(7500)))
    }

    @Test("A reconnection time above the backoff limit is used")
    func longRetry() {
        var machine = machine { $0.backoffLimit = .seconds(1) }
        machine.read(lastEventID: "", retryMilliseconds: 60_000)
        for _ in 0..<5 {
            #expect(machine.failed(isTransient: true, jitter: 1) == .reconnect(after: .seconds(60)))
        }
    }

    @Test("After the maximum number of consecutive failures the last one ends the stream")
    func failureLimit() {
        var machine = machine { $0.failureLimit = 3 }
        #expect(machine.failed(isTransient: true, jitter: 0) != .fail)
        #expect(machine.failed(isTransient: true, jitter: 0) != .fail)
        #expect(machine.failed(isTransient: true, jitter: 0) == .fail)
    }

    @Test("Without a limit the stream keeps reconnecting, and no number overflows")
    func noFailureLimit() {
        var machine = machine {
            $0.failureLimit = nil
            $0.backoffLimit = .seconds(Int64.max)
        }
        for _ in 0..<200 { #expect(machine.failed(isTransient: true, jitter: 1) != .fail) }
    }

    @Test("A permanent failure ends the stream, and so does any failure without reconnection")
    func lasting() {
        var lasting = machine()
        #expect(lasting.failed(isTransient: false, jitter: 0) == .fail)
        var single = machine { $0.reconnects = false }
        #expect(single.failed(isTransient: true, jitter: 0) == .fail)
        #expect(single.ended() == .finish)
    }

    @Test("The last event ID is sent back unchanged, and omitted if it cannot be a field value")
    func identifier() {
        var machine = machine { $0.lastEventID = "first" }
        #expect(machine.lastEventIDField == "first")
        machine.read(lastEventID: "naïve 42", retryMilliseconds: nil)
        #expect(machine.lastEventIDField == "naïve 42")
        machine.read(lastEventID: "", retryMilliseconds: nil)
        #expect(machine.lastEventIDField == nil)
        machine.read(lastEventID: "a\u{1}b", retryMilliseconds: nil)
        #expect(machine.lastEventIDField == nil)
        machine.read(lastEventID: String(repeating: "x", count: 8193), retryMilliseconds: nil)
        #expect(machine.lastEventIDField == nil)
    }
}
