import MartletWire
import Testing

@Suite("Body framing")
struct FramingTests {
    private func outcome(
        _ fields: String, _ body: String = "", method: String = "GET", status: String = "200 OK",
        version: String = "1.1", limits: WireLimits = .default, ending: WireScript.Ending = .open
    ) -> WireOutcome {
        WireScript(
            "HTTP/\(version) \(status)\r\n\(fields)\r\n\(body)", method: method, limits: limits,
            ending: ending
        ).run()
    }

    /// The offset of the first field line of a `200 OK`.
    private let start = 17

    private var strict: WireLimits {
        var limits = WireLimits()
        limits.isStrict = true
        return limits
    }

    // MARK: Content-Length

    @Test("A body has as many bytes as Content-Length specifies, and the connection is reusable")
    func length() {
        let outcome = outcome("Content-Length: 5\r\n", "hello")
        #expect(outcome.framing == .length(5))
        #expect(outcome.body == "hello")
        #expect(outcome.isReusable)
    }

    @Test("A body of length 0 is complete immediately")
    func zeroLength() {
        let outcome = outcome("content-length:0\r\n")
        #expect(outcome.framing == .length(0))
        #expect(outcome.isComplete)
        #expect(outcome.isReusable)
    }

    @Test(
        "Equal Content-Lengths count as one, on several lines and in a list",
        arguments: [
            "Content-Length: 5\r\nContent-Length: 5\r\n", "Content-Length: 5, 5\r\n",
            "Content-Length: 05\r\ncontent-length: 05\r\n",
        ])
    func equalLengths(fields: String) {
        #expect(outcome(fields, "hello").body == "hello")
    }

    @Test(
        "Different Content-Lengths are rejected",
        arguments: [
            ("Content-Length: 5\r\nContent-Length: 6\r\n", 52), ("Content-Length: 5, 6\r\n", 33),
            ("Content-Length: 5, 05\r\n", 33), ("Content-Length: 030, 30\r\n", 33),
        ])
    func differingLengths(fields: String, offset: Int) {
        #expect(outcome(fields).fault == WireError(.conflictingContentLengths, at: offset))
    }

    @Test(
        "A Content-Length that is not plain digits is rejected",
        arguments: [
            "+5", "-1", "0x5", "5 5", "5;", "1e1", "\u{665}", "", "5,", ",5", "5.0", "five", "\"5\"", "5, x",
            "1_000",
        ])
    func malformedLength(value: String) {
        let fault = outcome("Content-Length: \(value)\r\n").fault
        #expect(fault?.code == .invalidContentLength)
        #expect(fault?.isLocalError == false)
    }

    @Test(
        "A Content-Length of 2^63 or more is rejected without an allocation",
        arguments: [
            "9223372036854775808", "18446744073709551615", "18446744073709551616", "18446744073709551621",
            "99999999999999999999", "100000000000000000000000000000000000005",
        ])
    func overflow(value: String) {
        let fault = outcome("Content-Length: \(value)\r\n").fault
        #expect(fault == WireError(.contentLengthOverflow, at: start + 16))
    }

    @Test("The largest Content-Length is accepted")
    func largestLength() {
        let outcome = WireScript(
            "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\nhi", ending: .cleanClose
        ).run()
        #expect(outcome.framing == .length(UInt64(Int64.max)))
        let truncation = Truncation.length(expected: UInt64(Int64.max), received: 2)
        #expect(outcome.fault?.code == .truncated(truncation))
    }

    // MARK: Transfer-Encoding

    @Test("Transfer-Encoding overrides Content-Length, and the connection is not reused")
    func bothFields() {
        let fields = "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"
        let outcome = outcome(fields, "5\r\nhello\r\n0\r\n\r\n")
        #expect(outcome.framing == .chunked)
        #expect(outcome.body == "hello")
        #expect(!outcome.isReusable)
    }

    @Test("Strict mode rejects Transfer-Encoding together with Content-Length")
    func strictBothFields() {
        let fields = "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"
        #expect(outcome(fields, limits: strict).fault == WireError(.ambiguousFraming, at: start + 16))
    }

    @Test(
        "The chunked coding is recognized in any case and in a list with empty members",
        arguments: ["Chunked", "CHUNKED", ", chunked ,"])
    func chunkedSpellings(value: String) {
        let outcome = outcome("transfer-encoding: \(value)\r\n", "2\r\nhi\r\n0\r\n\r\n")
        #expect(outcome.body == "hi")
        #expect(outcome.isReusable)
    }

    @Test(
        "A transfer coding other than chunked is rejected",
        arguments: [
            "xchunked", "chunkedx", "identity", "gzip", "gzip, chunked", "chunked;q=1", "\"chunked\"",
            "chun ked",
        ])
    func unsupportedCoding(value: String) {
        let fault = outcome("Transfer-Encoding: \(value)\r\n").fault
        #expect(fault == WireError(.unsupportedTransferCoding, at: start + 19))
    }

    @Test("A coding after chunked is rejected", arguments: ["chunked, identity", "chunked, gzip"])
    func chunkedNotLast(value: String) {
        #expect(
            outcome("Transfer-Encoding: \(value)\r\n").fault == WireError(.chunkedNotLast, at: start + 19))
    }

    @Test("A coding after chunked on another line is rejected")
    func chunkedNotLastInLines() {
        let fields = "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n"
        #expect(outcome(fields).fault == WireError(.chunkedNotLast, at: start + 19))
    }

    @Test(
        "A duplicate chunked coding is rejected",
        arguments: [
            "Transfer-Encoding: chunked, chunked\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        ])
    func repeatedChunked(fields: String) {
        #expect(outcome(fields).fault == WireError(.repeatedChunked, at: start + 19))
    }

    @Test("An empty Transfer-Encoding is rejected", arguments: ["", ",", " , ,"])
    func emptyCoding(value: String) {
        let fault = outcome("Transfer-Encoding:\(value)\r\nContent-Length: 3\r\n").fault
        #expect(fault?.code == .emptyTransferEncoding)
    }

    @Test("Transfer-Encoding in an HTTP/1.0 response is rejected")
    func chunkedInHTTP10() {
        let fault = outcome("Transfer-Encoding: chunked\r\n", version: "1.0").fault
        #expect(fault == WireError(.transferEncodingInHTTP10, at: start + 19))
    }

    // MARK: Bodies that end with the connection

    @Test("A response without a length ends with its connection, which is not reused")
    func untilClose() {
        let outcome = outcome("", "hello", ending: .cleanClose)
        #expect(outcome.framing == .untilClose)
        #expect(outcome.body == "hello")
        #expect(outcome.isComplete)
        #expect(!outcome.isReusable)
    }

    @Test("An empty body that ends with the connection is complete")
    func emptyUntilClose() {
        #expect(outcome("", ending: .cleanClose).isComplete)
    }

    // MARK: Responses without a body

    @Test(
        "HEAD, 204 and 304 have no body, and contradictory framing makes the connection unusable",
        arguments: [
            ("HEAD", "200 OK"), ("GET", "204 No Content"), ("GET", "304 Not Modified"),
            ("HEAD", "404 Not Found"),
        ],
        [
            "", "Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n",
            "Content-Length: 5\r\nContent-Length: 6\r\n",
        ])
    func bodyless(response: (method: String, status: String), fields: String) {
        let outcome = outcome(fields, method: response.method, status: response.status)
        #expect(outcome.framing == BodyFraming.none)
        #expect(outcome.body == "")
        #expect(outcome.isComplete)
        let isContradictory =
            switch fields {
            case "": false
            case "Content-Length: 5\r\n": response.status == "204 No Content"
            case "Transfer-Encoding: chunked\r\n": response.method != "HEAD"
            default: true
            }
        #expect(outcome.isReusable == !isContradictory)
    }

    @Test(
        "Bytes after a response without a body are left unread and make the connection unusable",
        arguments: ["HEAD", "GET"])
    func bytesBehindBodyless(method: String) {
        let status = method == "HEAD" ? "200 OK" : "204 No Content"
        let outcome = outcome("Content-Length: 5\r\n", "hello", method: method, status: status)
        #expect(outcome.body == "")
        #expect(outcome.unreadByteCount == 5)
        #expect(!outcome.isReusable)
    }

    @Test("A 2xx response to CONNECT has no body, and the following bytes belong to the tunnel")
    func connect() {
        let outcome = outcome("Content-Length: 5\r\n", "\u{16}\u{03}\u{01}", method: "CONNECT")
        #expect(outcome.framing == BodyFraming.none)
        #expect(outcome.unreadByteCount == 3)
        #expect(!outcome.isReusable)
    }

    @Test("An unsuccessful response to CONNECT has a body")
    func rejectedConnect() {
        let status = "407 Proxy Authentication Required"
        let outcome = outcome("Content-Length: 2\r\n", "no", method: "CONNECT", status: status)
        #expect(outcome.body == "no")
        #expect(outcome.isReusable)
    }

    @Test("A method in another spelling of HEAD is not HEAD")
    func lowerCaseHead() {
        #expect(outcome("Content-Length: 2\r\n", "hi", method: "head").body == "hi")
    }

    @Test("A second response after the first is left unread and makes the connection unusable")
    func queuePoisoning() {
        let second = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
        let outcome = outcome("Content-Length: 4\r\n", "good" + second)
        #expect(outcome.body == "good")
        #expect(outcome.unreadByteCount == second.utf8.count)
        #expect(!outcome.isReusable)
    }
}
