import MartletWire
import Testing

@Suite("Interim responses")
struct InterimTests {
    @Test("100, 102 and 103 are delivered as events before the final response", arguments: [100, 102, 103, 199])
    func interim(status: Int) {
        let text =
            "HTTP/1.1 \(status) Wait\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
        let outcome = WireScript(text).run()
        #expect(outcome.informational.map(\.status) == [status])
        #expect(outcome.head?.status == 200)
        #expect(outcome.body == "hi")
        #expect(outcome.isReusable)
    }

    @Test("The fields of an interim response belong to it alone")
    func noLeak() {
        let text =
            "HTTP/1.1 103 Early Hints\r\nSet-Cookie: evil=1\r\nContent-Length: 99\r\n\r\n"
            + "HTTP/1.1 204 No Content\r\nA: b\r\n\r\n"
        let outcome = WireScript(text).run()
        #expect(outcome.informational.first?.fields.contains("set-cookie") == true)
        #expect(outcome.head?.fields == FieldBlock([("A", "b")]))
        #expect(outcome.isReusable)
    }

    @Test("The maximum number of interim responses is accepted, and one more is rejected")
    func bounded() {
        var limits = WireLimits()
        limits.informationalResponseLimit = 2
        let interim = "HTTP/1.1 102 Processing\r\n\r\n"
        let final = "HTTP/1.1 204 No Content\r\n\r\n"
        let passing = WireScript(interim + interim + final, limits: limits).run()
        #expect(passing.informational.count == 2)
        #expect(passing.isComplete)
        let rejected = WireScript(interim + interim + interim + final, limits: limits).run()
        #expect(rejected.fault?.code == .tooManyInformationalResponses(limit: 2))
    }

    @Test("The eleventh interim response is rejected")
    func flood() {
        var machine = ClientMachine()
        machine.startRequest(method: "GET")
        let text = String(repeating: "HTTP/1.1 103 Early Hints\r\n\r\n", count: 200)
        let events = machine.events(of: text)
        #expect(events.count == 11)
        #expect(events.last == .fault(WireError(.tooManyInformationalResponses(limit: 10), at: 0)))
    }

    @Test("An unrequested 101 is rejected")
    func unexpectedUpgrade() {
        let outcome = WireScript("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nx").run()
        #expect(outcome.fault == WireError(.unexpectedUpgrade, at: 0))
        #expect(!outcome.isReusable)
    }
}
