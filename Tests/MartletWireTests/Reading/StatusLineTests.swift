import MartletWire
import Testing

@Suite("Status lines")
struct StatusLineTests {
    private func head(_ statusLine: String) -> ResponseHead? {
        WireScript("\(statusLine)\r\nContent-Length: 0\r\n\r\n").run().head
    }

    private func fault(_ statusLine: String) -> WireError? {
        WireScript("\(statusLine)\r\nContent-Length: 0\r\n\r\n").run().fault
    }

    @Test("The version, status and reason are parsed")
    func plain() {
        let head = head("HTTP/1.1 404 Not Found")
        #expect(head?.version == .http11)
        #expect(head?.status == 404)
        #expect(head?.reason == "Not Found")
    }

    @Test("A reason phrase can be absent, with and without the space before it", arguments: ["", " "])
    func missingReason(end: String) {
        let head = head("HTTP/1.1 200\(end)")
        #expect(head?.status == 200)
        #expect(head?.reason == "")
    }

    @Test("Unregistered statuses are accepted", arguments: [100 + 199, 599, 999, 418, 200])
    func anyStatus(status: Int) {
        #expect(head("HTTP/1.1 \(status) Odd")?.status == status)
    }

    @Test("HTTP/1.0 is recognized")
    func version10() {
        #expect(head("HTTP/1.0 200 OK")?.version == .http10)
    }

    @Test("A minor version above 1 is treated as 1.1")
    func laterMinorVersion() {
        #expect(head("HTTP/1.2 200 OK")?.version == .http11)
    }

    @Test("A reason phrase with invalid UTF-8 is decoded as Latin-1")
    func latin1Reason() {
        let bytes =
            Array("HTTP/1.1 200 Gr".utf8) + [0xFC, 0xDF] + Array("e\r\nContent-Length: 0\r\n\r\n".utf8)
        let read = WireScript(bytes: bytes).run().head
        #expect(read?.reason == "Gr\u{FC}\u{DF}e")
        #expect(read?.reasonBytes == Array("Gr".utf8) + [0xFC, 0xDF] + Array("e".utf8))
        #expect(head("HTTP/1.1 200 \u{FC}")?.reasonBytes == [0xC3, 0xBC])
    }

    @Test("Empty lines before the status line are tolerated", arguments: ["\r\n", "\r\n\r\n", "\n"])
    func leadingEmptyLine(prefix: String) {
        let outcome = WireScript(prefix + "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").run()
        #expect(outcome.body == "hi")
        #expect(outcome.isReusable)
    }

    @Test("Strict mode rejects an empty line before the status line")
    func strictLeadingEmptyLine() {
        var limits = WireLimits()
        limits.isStrict = true
        let outcome = WireScript("\r\nHTTP/1.1 204 No Content\r\n\r\n", limits: limits).run()
        #expect(outcome.fault == WireError(.invalidStatusLine, at: 0))
    }

    @Test(
        "A status that is not three digits from 100 to 999 is rejected",
        arguments: [
            ("1000", 12), ("20x", 11), ("000", 9), ("099", 9), ("2 0", 10), ("-20", 9), ("20", 11), ("", 9),
            ("+200", 9), ("2\u{663}0", 10),
        ])
    func badStatus(status: String, offset: Int) {
        #expect(fault("HTTP/1.1 \(status)") == WireError(.invalidStatusCode, at: offset))
    }

    @Test(
        "The error for another HTTP version names the version",
        arguments: ["HTTP/2 200 OK", "HTTP/2.0 200 OK", "HTTP/0.9 200 OK"])
    func otherVersion(line: String) {
        #expect(fault(line) == WireError(.unsupportedVersion, at: 5))
    }

    @Test(
        "An invalid status line is rejected at its first invalid byte",
        arguments: [
            ("HTTP/1.1200 OK", 8), ("HTTP/1.1", 8), ("HTTP/1.10 200 OK", 8), ("HTTP/1,1 200 OK", 6),
            ("http/1.1 200 OK", 0), ("HTTP 200 OK", 4), ("HTTP/x.1 200 OK", 5), ("<html>", 0),
            ("SSH-2.0-OpenSSH_9.2", 0), ("ICY 200 OK", 0), (" HTTP/1.1 200 OK", 0), ("HTTP/1.1\t200 OK", 8),
            ("HTTP/1.1 200\tOK", 12), ("HTTP/", 5), ("HTTP/1.x 200 OK", 6), ("HTTP/1", 6),
        ])
    func garbage(line: String, offset: Int) {
        #expect(fault(line) == WireError(.invalidStatusLine, at: offset))
    }

    @Test("A peer with another protocol is rejected at its first byte, without waiting for a line end")
    func otherProtocolWithoutLineEnd() {
        var machine = ClientMachine()
        machine.startRequest(method: "GET")
        #expect(machine.events(of: "\u{16}\u{03}") == [.fault(WireError(.invalidStatusLine, at: 0))])
    }

    @Test("Two blanks before the status are rejected")
    func doubleBlank() {
        #expect(fault("HTTP/1.1  200 OK") == WireError(.invalidStatusCode, at: 9))
    }

    @Test(
        "A control byte in a reason phrase is rejected", arguments: [0x00, 0x01, 0x0B, 0x1B, 0x7F] as [UInt8])
    func controlInReason(byte: UInt8) {
        let bytes = Array("HTTP/1.1 200 O".utf8) + [byte] + Array("K\r\nContent-Length: 0\r\n\r\n".utf8)
        #expect(WireScript(bytes: bytes).run().fault == WireError(.malformedFieldValue(byte), at: 14))
    }

    @Test("A lone CR in a status line is rejected")
    func carriageReturnInReason() {
        #expect(fault("HTTP/1.1 200 O\rK") == WireError(.bareCarriageReturn, at: 14))
        #expect(fault("HTTP/1.1 200 OK\r") == WireError(.bareCarriageReturn, at: 15))
    }

    @Test("A lone CR before the status line is rejected")
    func carriageReturnBefore() {
        #expect(fault("\rHTTP/1.1 200 OK") == WireError(.bareCarriageReturn, at: 0))
    }
}
