import MartletWire
import Testing

@Suite("Client exchanges")
struct ClientMachineTests {
    private func isReusable(
        _ fields: String, version: String = "1.1", request: WireVersion = .http11, wantsKeepAlive: Bool = true
    ) -> Bool {
        var machine = ClientMachine()
        machine.startRequest(method: "GET", wantsKeepAlive: wantsKeepAlive, version: request)
        machine.requestFinished()
        _ = machine.events(of: "HTTP/\(version) 200 OK\r\nContent-Length: 2\r\n\(fields)\r\nhi")
        return machine.isReusable
    }

    @Test("An HTTP/1.1 connection stays open without Connection: close")
    func persistence11() {
        #expect(isReusable(""))
        #expect(isReusable("Connection: keep-alive\r\n"))
        #expect(isReusable("Connection: closed\r\n"))
    }

    @Test(
        "Connection: close is recognized in any case, list and line",
        arguments: [
            "Connection: close\r\n", "connection: CLOSE\r\n", "Connection: keep-alive, Close\r\n",
            "Connection: foo ,\tclose , bar\r\n", "Connection: keep-alive\r\nConnection: close\r\n",
            "Connection:close\r\n",
        ])
    func close(fields: String) {
        #expect(!isReusable(fields))
    }

    @Test("An HTTP/1.0 connection stays open only with keep-alive")
    func persistence10() {
        #expect(!isReusable("", version: "1.0"))
        #expect(isReusable("Connection: Keep-Alive\r\n", version: "1.0"))
        #expect(isReusable("Connection: foo, keep-alive\r\n", version: "1.0"))
        #expect(!isReusable("Connection: keep-alive, close\r\n", version: "1.0"))
    }

    @Test("A response to an HTTP/1.0 request keeps the connection open only with keep-alive")
    func requestVersion10() {
        #expect(!isReusable("", request: .http10))
        #expect(isReusable("Connection: keep-alive\r\n", request: .http10))
    }

    @Test("A client that does not want keep-alive closes the connection")
    func unwanted() {
        #expect(!isReusable("", wantsKeepAlive: false))
    }

    @Test("Keep-Alive specifies the remaining seconds and uses")
    func keepAlive() {
        var machine = ClientMachine()
        machine.startRequest(method: "GET")
        machine.requestFinished()
        let fields = "Keep-Alive: Timeout=5, max=\"100\"\r\n"
        _ = machine.events(of: "HTTP/1.1 204 No Content\r\n\(fields)\r\n")
        let hint = machine.keepAlive
        #expect(hint.timeout == 5)
        #expect(hint.remainingUses == 100)
    }

    @Test(
        "A malformed Keep-Alive is ignored",
        arguments: [
            "timeout=-5", "timeout", "timeout=", "timeout=5s", "timeout=99999999999999999999", "=5", ",",
        ])
    func malformedKeepAlive(value: String) {
        let hint = KeepAliveHint(FieldBlock([("Keep-Alive", value)]))
        #expect(hint.timeout == nil)
        #expect(hint.remainingUses == nil)
    }

    @Test("A connection without remaining uses is not reused")
    func lastUse() {
        #expect(!isReusable("Keep-Alive: timeout=5, max=0\r\n"))
        #expect(isReusable("Keep-Alive: timeout=5, max=1\r\n"))
    }

    @Test("After an early response the connection is reusable only once the request is complete")
    func earlyResponse() {
        var machine = ClientMachine()
        machine.startRequest(method: "POST")
        _ = machine.events(of: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        var isReusable = machine.isReusable
        #expect(!isReusable)
        let isFinished = machine.isResponseFinished
        #expect(isFinished)
        machine.requestFinished()
        isReusable = machine.isReusable
        #expect(isReusable)
    }

    @Test("An incomplete request body makes the connection unusable")
    func abortedRequest() {
        var machine = ClientMachine()
        machine.startRequest(method: "POST")
        machine.requestAborted()
        _ = machine.events(of: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        machine.requestFinished()
        let isReusable = machine.isReusable
        #expect(!isReusable)
    }

    @Test("Consecutive exchanges on one connection share no state")
    func severalExchanges() {
        var machine = ClientMachine()
        machine.startRequest(method: "GET")
        machine.requestFinished()
        _ = machine.events(
            of:
                "HTTP/1.1 103 Early Hints\r\n\r\n"
                + "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nKeep-Alive: timeout=9\r\n\r\nhi"
        )
        machine.startRequest(method: "HEAD")
        var hasReceived = machine.hasReceivedAnyByte
        #expect(!hasReceived)
        machine.requestFinished()
        #expect(machine.events(of: "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n").count == 2)
        machine.startRequest(method: "GET")
        machine.requestFinished()
        let events = machine.events(
            of: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n")
        #expect(events.suffix(2) == [.body([0x78]), .end(nil)])
        hasReceived = machine.hasReceivedAnyByte
        #expect(hasReceived)
        let timeout = machine.keepAlive.timeout
        #expect(timeout == nil)
        let isReusable = machine.isReusable
        #expect(isReusable)
    }

    @Test("The first byte of a response marks the response as begun")
    func anyByte() {
        var machine = ClientMachine()
        machine.startRequest(method: "GET")
        _ = machine.events(of: "")
        var hasReceived = machine.hasReceivedAnyByte
        #expect(!hasReceived)
        _ = machine.events(of: "H")
        hasReceived = machine.hasReceivedAnyByte
        #expect(hasReceived)
    }

    @Test("Bytes on an idle connection are an error and never a response")
    func unsolicited() {
        var machine = ClientMachine()
        machine.startRequest(method: "GET")
        machine.requestFinished()
        _ = machine.events(of: "HTTP/1.1 204 No Content\r\n\r\n")
        let late = machine.events(of: "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
        #expect(late == [.fault(WireError(.unsolicitedBytes, at: 0))])
        let isReusable = machine.isReusable
        #expect(!isReusable)
    }

    @Test("A request on a connection that is not reusable is a local error")
    func startOutOfOrder() {
        var machine = ClientMachine()
        machine.startRequest(method: "GET")
        machine.startRequest(method: "GET")
        let events = machine.events(of: "HTTP/1.1 204 No Content\r\n\r\n")
        #expect(events == [.fault(WireError(.illegalEvent, at: 0))])
        #expect(WireError(.illegalEvent, at: 0).isLocalError)
    }

    // MARK: Directly received payload

    @Test("A body of known length can be received directly up to its last byte")
    func directLength() {
        var machine = ClientMachine()
        machine.startRequest(method: "GET")
        machine.requestFinished()
        var direct = machine.directPayloadByteCount
        #expect(direct == 0)
        _ = machine.events(of: "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
        direct = machine.directPayloadByteCount
        #expect(direct == 7)
        #expect(machine.receivedDirectly(4) == nil)
        direct = machine.directPayloadByteCount
        #expect(direct == 3)
        #expect(machine.receivedDirectly(0) == nil)
        #expect(machine.receivedDirectly(3) == .end(trailers: nil))
        direct = machine.directPayloadByteCount
        #expect(direct == 0)
        let isReusable = machine.isReusable
        #expect(isReusable)
    }

    @Test("The rest of a chunk can be received directly, but not its footer")
    func directChunk() {
        var machine = ClientMachine()
        machine.startRequest(method: "GET")
        _ = machine.events(of: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        var direct = machine.directPayloadByteCount
        #expect(direct == 0)
        _ = machine.events(of: "5\r\nhe")
        direct = machine.directPayloadByteCount
        #expect(direct == 3)
        #expect(machine.receivedDirectly(3) == nil)
        direct = machine.directPayloadByteCount
        #expect(direct == 0)
        #expect(machine.events(of: "\r\n0\r\n\r\n") == [.end(nil)])
    }

    @Test("A body that ends with the connection can be received directly without limit")
    func directUntilClose() throws {
        var machine = ClientMachine()
        machine.startRequest(method: "GET")
        _ = machine.events(of: "HTTP/1.1 200 OK\r\n\r\n")
        let direct = machine.directPayloadByteCount
        #expect(direct == .max)
        #expect(machine.receivedDirectly(1_000_000) == nil)
        let fault = machine.faultOfEnd(isClean: false)
        #expect(fault?.code == .truncated(.untilClose(received: 1_000_000)))
    }

    @Test("Bytes that are received directly count in a truncation error")
    func directTruncation() {
        var machine = ClientMachine()
        machine.startRequest(method: "GET")
        _ = machine.events(of: "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nab")
        #expect(machine.receivedDirectly(3) == nil)
        let fault = machine.faultOfEnd(isClean: true)
        #expect(fault?.code == .truncated(.length(expected: 10, received: 5)))
    }

    @Test("Receiving more bytes directly than the body has left is a local error")
    func directTooMany() {
        var machine = ClientMachine()
        machine.startRequest(method: "GET")
        _ = machine.events(of: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
        #expect(machine.receivedDirectly(3) == nil)
        #expect(machine.events(of: "hi") == [.fault(WireError(.illegalEvent, at: 0))])
    }
}
