import MartletWire
import Testing

@Suite("Truncation")
struct TruncationTests {
    @Test(
        "The end of the stream before any byte is an empty response",
        arguments: [WireScript.Ending.cleanClose, .brokenClose])
    func emptyResponse(ending: WireScript.Ending) {
        #expect(WireScript("", ending: ending).run().fault == WireError(.emptyResponse, at: 0))
    }

    @Test("The end of the stream at any byte of the head is a truncation")
    func cutHead() {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
        for count in 1..<head.utf8.count {
            let outcome = WireScript(String(head.prefix(count)), ending: .cleanClose).read([
                Array(head.utf8.prefix(count))
            ])
            #expect(outcome.fault == WireError(.truncated(.head(received: count)), at: count))
        }
    }

    @Test(
        "An end after only an interim response is an empty response, and one byte more makes it a truncation")
    func endAfterInterim() {
        let outcome = WireScript("HTTP/1.1 103 Early Hints\r\n\r\n", ending: .cleanClose).run()
        #expect(outcome.informational.count == 1)
        #expect(outcome.fault == WireError(.emptyResponse, at: 0))
        let begun = WireScript("HTTP/1.1 103 Early Hints\r\n\r\nH", ending: .cleanClose).run()
        #expect(begun.fault?.code == .truncated(.head(received: 1)))
    }

    @Test("A body that lacks one byte is a truncation, and the received bytes remain delivered")
    func shortBody() {
        let text = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello"
        let outcome = WireScript(text, ending: .cleanClose).run()
        #expect(outcome.body == "hello")
        #expect(outcome.fault?.code == .truncated(.length(expected: 6, received: 5)))
        #expect(outcome.fault?.description == "the stream ended after 5 of 6 bytes of the body")
    }

    @Test("A complete body of known length is accepted even if the stream then breaks off")
    func completeThenBroken() {
        let text = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
        let outcome = WireScript(text, ending: .brokenClose).run()
        #expect(outcome.isComplete)
        #expect(outcome.fault == nil)
    }

    @Test(
        "A close-delimited body is truncated if the stream breaks off, as TLS does without close_notify"
    )
    func brokenUntilClose() {
        let outcome = WireScript("HTTP/1.1 200 OK\r\n\r\nhello", ending: .brokenClose).run()
        #expect(outcome.body == "hello")
        #expect(outcome.fault?.code == .truncated(.untilClose(received: 5)))
    }

    @Test("An end between exchanges is not an error but makes the connection unusable")
    func endWhileIdle() {
        var machine = ClientMachine()
        machine.startRequest(method: "GET")
        machine.requestFinished()
        #expect(machine.events(of: "HTTP/1.1 204 No Content\r\n\r\n").count == 2)
        let wasReusable = machine.isReusable
        #expect(wasReusable)
        #expect(machine.faultOfEnd(isClean: true) == nil)
        let isReusable = machine.isReusable
        #expect(!isReusable)
    }

    @Test("An end immediately after the last byte is not a truncation")
    func endBeforeReport() throws {
        var machine = ClientMachine()
        machine.startRequest(method: "GET")
        let head = Array("HTTP/1.1 204 No Content\r\n\r\n".utf8)
        _ = try machine.receive(head.span)
        let event = try machine.receiveEndOfStream(isClean: false)
        #expect(event == .end(trailers: nil))
    }
}
