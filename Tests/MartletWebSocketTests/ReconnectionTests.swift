import Martlet
import MartletCore
import MartletTesting
import MartletTestSupport
import MartletWebSocket
import Testing

@Suite("WebSocket: reconnection", .timeLimit(.minutes(5)))
struct ReconnectionTests {
    private typealias Step = WebSocketReconnectionMachine.Step

    @Test("The delay doubles with each failure up to its maximum, and a stable connection resets it")
    func delays() {
        var machine = WebSocketReconnectionMachine(
            WebSocketReconnectionPolicy {
                ($0.initialDelay, $0.maximumDelay, $0.failureLimit) = (.seconds(1), .seconds(5), nil)
            })
        for seconds in [1, 2, 4, 5, 5] {
            #expect(
                machine.failed(isTransient: true, retryAfter: nil, random: 1) == .connect(after: .seconds(seconds)))
        }
        #expect(machine.ended(.goingAway, after: .seconds(1), random: 0.5) == .connect(after: .milliseconds(2500)))
        #expect(machine.ended(.abnormalClosure, after: .seconds(10), random: 1) == .connect(after: .seconds(1)))
        #expect(machine.failed(isTransient: true, retryAfter: .seconds(90), random: 0) == .connect(after: .seconds(90)))
        #expect(
            machine.failed(isTransient: true, retryAfter: .seconds(9000), random: 0) == .connect(after: .seconds(3600)))
    }

    @Test("Failures that a retry cannot fix, too many failures, and regular ends end the sequence")
    func ends() {
        var machine = WebSocketReconnectionMachine(WebSocketReconnectionPolicy { $0.failureLimit = 2 })
        #expect(machine.failed(isTransient: false, retryAfter: nil, random: 0) == .fail)
        #expect(machine.ended(.normalClosure, after: .zero, random: 0) == .finish)
        #expect(machine.ended(nil, after: .zero, random: 0) == .finish)
        #expect(machine.ended(.goingAway, after: .zero, random: 0) == .connect(after: .zero))
        #expect(machine.failed(isTransient: true, retryAfter: nil, random: 0) == .connect(after: .zero))
        #expect(machine.failed(isTransient: true, retryAfter: nil, random: 0) == .fail)
        var none = WebSocketReconnectionMachine(WebSocketReconnectionPolicy { $0.failureLimit = -1 })
        #expect(none.failed(isTransient: true, retryAfter: nil, random: 0) == .fail)
    }

    private func session() -> HTTPSession { HTTPSession(configuration: .ephemeral) }

    @Test("A lost connection is followed by another one, and the code 1000 ends the sequence")
    func reconnects() async throws {
        let count = CurrentValue(0)
        let handler = OriginHandler { request in
            count.change { $0 += 1 }
            let number = count.value
            if number == 2 { return .text("", status: 503) }
            return try await OriginHandler.webSocket { socket in
                try await socket.send(.text("\(number)"))
                switch number {
                case 1: try await socket.send(raw: [0x81, 0x05])
                case 3: try await socket.close(.serviceRestart)
                default: try await socket.close(.normalClosure)
                }
                if number != 1 { _ = try await socket.receive() }
            }.respond(to: request)
        }
        try await TestOrigin.withOrigin(handler: handler) { (origin) async throws in
            let timers = ManualTimers()
            let options = WebSocketOptions { $0.sleep = { try await timers.sleep($0, $1) } }
            for _ in 0..<3 { timers.fire(.reconnection) }
            var texts: [String?] = []
            for try await socket in session().webSocketConnections(to: origin.url("/"), options: options) {
                for try await message in socket.messages { texts.append(message.text) }
            }
            #expect(texts == ["1", "3", "4"])
            #expect(timers.waits(.reconnection).count == 3)
        }
    }

    @Test("A rejection ends the sequence with its error, and later calls return nothing")
    func rejection() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("", status: 403)
        } run: { (origin) async throws in
            var iterator = session().webSocketConnections(to: origin.url("/")).makeAsyncIterator()
            let error = await #expect(throws: HTTPError.self) { _ = try await iterator.next() }
            #expect(error?.status == 403)
            #expect(try await iterator.next() == nil)
        }
    }

    @Test("Closing the connection ends the sequence")
    func closing() async throws {
        try await TestOrigin.withOrigin(handler: .webSocketEcho()) { (origin) async throws in
            var count = 0
            for try await socket in session().webSocketConnections(to: origin.url("/")) {
                count += 1
                try await socket.close()
            }
            #expect(count == 1)
        }
    }

    @Test("Cancelling the wait for the next connection ends it")
    func cancelledWait() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("", status: 503)
        } run: { (origin) async throws in
            let timers = ManualTimers()
            let options = WebSocketOptions { $0.sleep = { try await timers.sleep($0, $1) } }
            let session = session()
            let task = Task {
                for try await _ in session.webSocketConnections(to: origin.url("/"), options: options) {}
            }
            #expect(await eventually { timers.waits(.reconnection).count == 1 })
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
        }
    }
}
