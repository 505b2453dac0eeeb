import MartletCore
import MartletDiagnostics
import MartletStreams
import Testing

@Suite("When a stream of events is connected again")
struct EventStreamMachineTests {
    private func machine(_ change: (inout EventStreamOptions) -> Void = { _ in }) -> EventStreamMachine {
        var options = EventStreamOptions()
        change(&options)
        return EventStreamMachine(options)
    }

    @Test("A 200 of the right type is read, whatever its parameters and case")
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

    @Test("Another status is refused", arguments: [201, 206, 301, 401, 404, 500, 503])
    func status(_ status: Int) {
        var machine = machine()
        #expect(machine.opened(status: status, contentType: "text/event-stream") == .refuseStatus(status))
    }

    @Test("Another content type, or none, is refused")
    func contentType() {
        var machine = machine()
        #expect(machine.opened(status: 200, contentType: "text/html") == .refuseContentType("text/html"))
        #expect(machine.opened(status: 200, contentType: nil) == .refuseContentType(""))
        #expect(machine.opened(status: 200, contentType: "junk") == .refuseContentType("junk"))
    }

    @Test("A stream that ends is connected again after three seconds, or as the server said")
    func reconnects() {
        var machine = machine()
        #expect(machine.ended() == .reconnect(after: .seconds(3)))
        machine.read(lastEventID: "", retryMilliseconds: 500)
        #expect(machine.ended() == .reconnect(after: .milliseconds(500)))
        machine.read(lastEventID: "", retryMilliseconds: nil)
        #expect(machine.ended() == .reconnect(after: .milliseconds(500)))
    }

    @Test("What the server says is held within the bounds")
    func bounds() {
        var machine = machine { $0.reconnectionTimeBounds = .seconds(1)...(.seconds(10)) }
        machine.read(lastEventID: "", retryMilliseconds: 0)
        #expect(machine.ended() == .reconnect(after: .seconds(1)))
        machine.read(lastEventID: "", retryMilliseconds: .max)
        #expect(machine.ended() == .reconnect(after: .seconds(10)))
    }

    @Test("The wait doubles while connecting fails, up to the limit, and a stream that opens starts anew")
    func backoff() {
        var machine = machine { $0.backoffLimit = .seconds(20) }
        let waits = (0..<5).map { _ in machine.failed(isTransient: true, jitter: 1) }
        #expect(waits == [3, 6, 12, 20, 20].map { .reconnect(after: .seconds($0)) })
        #expect(machine.opened(status: 200, contentType: "text/event-stream") == .read)
        #expect(machine.failed(isTransient: true, jitter: 1) == .reconnect(after: .seconds(3)))
    }

    @Test("Chance spreads the wait between the reconnection time and what it has grown to")
    func jitter() {
        var machine = machine()
        _ = machine.failed(isTransient: true, jitter: 0)
        #expect(machine.failed(isTransient: true, jitter: 0) == .reconnect(after: .seconds(3)))
        #expect(machine.failed(isTransient: true, jitter: 0.5) == .reconnect(after: .milliseconds(7500)))
    }

    @Test("A reconnection time above the backoff's limit stands")
    func longRetry() {
        var machine = machine { $0.backoffLimit = .seconds(1) }
        machine.read(lastEventID: "", retryMilliseconds: 60_000)
        for _ in 0..<5 {
            #expect(machine.failed(isTransient: true, jitter: 1) == .reconnect(after: .seconds(60)))
        }
    }

    @Test("After so many failures in a row the last one ends the stream")
    func failureLimit() {
        var machine = machine { $0.failureLimit = 3 }
        #expect(machine.failed(isTransient: true, jitter: 0) != .fail)
        #expect(machine.failed(isTransient: true, jitter: 0) != .fail)
        #expect(machine.failed(isTransient: true, jitter: 0) == .fail)
    }

    @Test("Without a limit it goes on, and no number overflows")
    func noFailureLimit() {
        var machine = machine {
            $0.failureLimit = nil
            $0.backoffLimit = .seconds(Int64.max)
        }
        for _ in 0..<200 { #expect(machine.failed(isTransient: true, jitter: 1) != .fail) }
    }

    @Test("A lasting fault ends the stream, and so does any where nothing is connected again")
    func lasting() {
        var lasting = machine()
        #expect(lasting.failed(isTransient: false, jitter: 0) == .fail)
        var single = machine { $0.reconnects = false }
        #expect(single.failed(isTransient: true, jitter: 0) == .fail)
        #expect(single.ended() == .finish)
    }

    @Test("The identifier is sent back as it came, and not at all when no field can hold it")
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
