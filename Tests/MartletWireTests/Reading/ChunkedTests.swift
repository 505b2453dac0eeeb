import MartletWire
import Testing

@Suite("Chunked bodies")
struct ChunkedTests {
    private static let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    private let base = ChunkedTests.head.utf8.count

    private func outcome(
        _ body: String, limits: WireLimits = .default, ending: WireScript.Ending = .open
    ) -> WireOutcome {
        WireScript(ChunkedTests.head + body, limits: limits, ending: ending).run()
    }

    private func fault(_ body: String, limits: WireLimits = .default) -> WireError? {
        outcome(body, limits: limits).fault
    }

    @Test("Chunks are joined and the connection is reusable")
    func chunks() {
        let outcome = outcome("5\r\nhello\r\n7\r\n, world\r\n0\r\n\r\n")
        #expect(outcome.body == "hello, world")
        #expect(outcome.trailers == nil)
        #expect(outcome.isReusable)
    }

    @Test("A body with only the last chunk is empty")
    func empty() {
        let outcome = outcome("0\r\n\r\n")
        #expect(outcome.isComplete)
        #expect(outcome.body == "")
    }

    @Test(
        "Chunk sizes are hexadecimal in either case, with leading and trailing zeros",
        arguments: ["A", "a", "0a", "000000000000000a"])
    func sizes(size: String) {
        #expect(outcome("\(size)\r\n0123456789\r\n000\r\n\r\n").body == "0123456789")
    }

    @Test("Payload that resembles framing is payload")
    func framingInPayload() {
        #expect(outcome("7\r\n\r\n0\r\n\r\n\r\n0\r\n\r\n").body == "\r\n0\r\n\r\n")
    }

    @Test("Extensions are skipped", arguments: [";a", ";a=b", "; a = \"b;c\"", ";a;b;c=d", " ;a", "\t;a"])
    func extensions(text: String) {
        #expect(outcome("2\(text)\r\nhi\r\n0\(text)\r\n\r\n").body == "hi")
    }

    @Test("Blanks after a size are tolerated because servers pad sizes")
    func paddedSize() {
        #expect(outcome("2  \r\nhi\r\n0 \r\n\r\n").body == "hi")
    }

    @Test("Strict mode rejects blanks after a size")
    func strictPaddedSize() {
        var limits = WireLimits()
        limits.isStrict = true
        #expect(fault("2 \r\n", limits: limits) == WireError(.invalidChunkSize, at: base + 1))
    }

    @Test(
        "A chunk size with other bytes than hexadecimal digits is rejected",
        arguments: [
            ("-5", 0), ("+5", 0), ("0x5", 1), ("", 0), ("5_", 1), (" 5", 0), ("g", 0), ("5 5", 2), (";a", 0),
            ("5,", 1),
            ("\u{665}", 0), ("5h", 1),
        ])
    func malformedSize(size: String, index: Int) {
        #expect(fault("\(size)\r\nhello\r\n0\r\n\r\n") == WireError(.invalidChunkSize, at: base + index))
    }

    @Test(
        "A chunk size of more than 16 digits is rejected at the 17th, zeros included",
        arguments: ["10000000000000005", "00000000000000005"])
    func tooManyDigits(size: String) {
        #expect(fault("\(size)\r\n") == WireError(.chunkSizeTooLong(limit: 16), at: base + 16))
    }

    @Test("Megabytes of zeros are rejected at the 17th while they still arrive")
    func endlessZeros() {
        var decoder = ChunkedDecoder()
        let zeros = [UInt8](repeating: 0x30, count: 2_000_000)
        #expect(throws: WireError(.chunkSizeTooLong(limit: 16), at: 16)) { try decoder.decode(zeros.span) }
    }

    @Test(
        "A chunk size of 2^63 or more is rejected",
        arguments: ["8000000000000000", "FFFFFFFFFFFFFFFF", "fffffffffffffffb"])
    func sizeOverflow(size: String) {
        #expect(fault("\(size)\r\n") == WireError(.chunkSizeOverflow, at: base + 15))
    }

    @Test(
        "A bare LF never ends a chunk-size line",
        arguments: [("5\nhello\r\n", 1), ("5;a\nhello\r\n", 3), ("5 \n", 2), ("0\n\r\n", 1)])
    func bareLineFeedInSize(body: String, index: Int) {
        #expect(fault(body) == WireError(.invalidChunkLineEnd, at: base + index))
    }

    @Test(
        "A CR in a chunk-size line must be followed by LF",
        arguments: [("5\rx", 2), ("5;a\rb\r\n", 4), ("5\r\r\n", 2)])
    func bareCarriageReturnInSize(body: String, index: Int) {
        #expect(fault(body) == WireError(.invalidChunkLineEnd, at: base + index))
    }

    @Test("A control byte in an extension is rejected")
    func controlInExtension() {
        #expect(fault("5;a\0\r\nhello\r\n") == WireError(.invalidChunkExtension(0), at: base + 3))
    }

    @Test(
        "A chunk footer must be CRLF",
        arguments: [
            ("2\r\nhiXX0\r\n\r\n", 5), ("2\r\nhi\n0\r\n\r\n", 5), ("2\r\nhi\rX", 6), ("2\r\nhi0\r\n\r\n", 5),
        ])
    func footer(body: String, index: Int) {
        #expect(fault(body) == WireError(.invalidChunkFooter, at: base + index))
    }

    @Test("Data longer than its chunk size is rejected, and no excess byte is delivered")
    func longData() {
        let outcome = outcome("2\r\nhigh\r\n0\r\n\r\n")
        #expect(outcome.body == "hi")
        #expect(outcome.fault == WireError(.invalidChunkFooter, at: base + 5))
    }

    @Test(
        "An end before the last chunk is a truncation that reports the received bytes",
        arguments: [WireScript.Ending.cleanClose, .brokenClose])
    func truncated(ending: WireScript.Ending) {
        let bodies: [(String, UInt64)] = [
            ("", 0), ("5", 0), ("5\r\nhel", 3), ("5\r\nhello", 5), ("5\r\nhello\r\n", 5),
            ("5\r\nhello\r\n0\r\n", 5),
            ("5\r\nhello\r\n0\r\nA: b\r\n", 5),
        ]
        for (body, received) in bodies {
            let outcome = outcome(body, ending: ending)
            #expect(outcome.fault?.code == .truncated(.chunked(received: received)))
            #expect(outcome.body == "hello".prefix(Int(received)))
            #expect(!outcome.isReusable)
        }
    }

    // MARK: Trailers

    @Test("Trailers are delivered with the end and never with the head")
    func trailers() {
        let outcome = outcome("2\r\nhi\r\n0\r\nX-Sum: 1\r\nSet-Cookie: a=b\r\nContent-Length: 9\r\n\r\n")
        let expected = FieldBlock([("X-Sum", "1"), ("Set-Cookie", "a=b"), ("Content-Length", "9")])
        #expect(outcome.trailers == expected)
        #expect(outcome.head?.fields == FieldBlock([("Transfer-Encoding", "chunked")]))
        #expect(outcome.isReusable)
    }

    @Test(
        "A bare LF never ends a line of the trailers",
        arguments: [("0\r\nA: b\n\r\n", 7), ("0\r\n\n", 3), ("0\r\nA: b\r\n\n", 9)])
    func bareLineFeedInTrailers(body: String, index: Int) {
        #expect(fault(body) == WireError(.bareLineFeed, at: base + index))
    }

    @Test(
        "Trailers must be valid fields",
        arguments: [
            ("bad", WireErrorCode.missingColon, 3), (": x", .emptyFieldName, 0),
            ("A : b", .whitespaceBeforeColon, 1),
            ("A: \0", .malformedFieldValue(0), 3), ("A: b\rc", .bareCarriageReturn, 4),
            (" A: b", .misplacedFold, 0),
            ("0", .missingColon, 1),
        ])
    func malformedTrailers(line: String, code: WireErrorCode, index: Int) {
        #expect(fault("0\r\n\(line)\r\n\r\n") == WireError(code, at: base + 3 + index))
    }

    @Test("Trailers above their limit are rejected at the limit while they still arrive")
    func trailerFlood() {
        var limits = WireLimits()
        limits.trailerByteLimit = 20
        #expect(
            outcome("0\r\nAAAAAAAA: bbbbbbb\r\n\r\n", limits: limits).fault?.code
                == .trailersTooLarge(limit: 20))
        #expect(outcome("0\r\nAAAAAAAA: bbbbbb\r\n\r\n", limits: limits).trailers?.count == 1)
    }

    @Test("20 MB of trailers are rejected after 16 KiB")
    func largeTrailerFlood() {
        var machine = ClientMachine()
        machine.startRequest(method: "GET")
        _ = machine.events(of: ChunkedTests.head + "0\r\n")
        let line = "X: " + String(repeating: "y", count: 1019) + "\r\n"
        var pieceCount = 0
        var events: [WireEvent] = []
        var unread = ""
        while events.isEmpty, pieceCount < 20_000 {
            unread += line
            pieceCount += 1
            events = machine.events(of: unread)
        }
        #expect(events == [.fault(WireError(.trailersTooLarge(limit: 16 * 1024), at: base + 3 + 16 * 1024))])
        #expect(pieceCount == 16)
    }

    // MARK: Extensions

    @Test("The limit for extensions counts all chunks of a message together")
    func extensionFlood() {
        var limits = WireLimits()
        limits.chunkExtensionByteLimit = 8
        let body = "1;aaa\r\nx\r\n1;bbb\r\ny\r\n1;\r\nz\r\n0\r\n\r\n"
        let outcome = outcome(body, limits: limits)
        #expect(outcome.body == "xy")
        #expect(outcome.fault == WireError(.chunkExtensionsTooLarge(limit: 8), at: base + 21))
    }

    @Test("1500 extensions of 16 KiB are rejected after 16 KiB and one byte")
    func largeExtensionFlood() {
        var decoder = ChunkedDecoder()
        let line = Array("1;".utf8) + [UInt8](repeating: 0x61, count: 16 * 1024)
        #expect(throws: WireError(.chunkExtensionsTooLarge(limit: 16 * 1024), at: 1 + 16 * 1024)) {
            try decoder.decode(line.span)
        }
    }

    @Test("Blanks after a size count toward the limit for extensions")
    func blankFlood() {
        var limits = WireLimits()
        limits.chunkExtensionByteLimit = 4
        #expect(
            fault("1     \r\n", limits: limits) == WireError(.chunkExtensionsTooLarge(limit: 4), at: base + 5)
        )
    }

    @Test("The limit for digits can be set below 16 but not above")
    func digitLimit() {
        var limits = WireLimits()
        limits.chunkSizeDigitLimit = 2
        #expect(fault("100\r\n", limits: limits) == WireError(.chunkSizeTooLong(limit: 2), at: base + 2))
        limits.chunkSizeDigitLimit = 1000
        let fault = fault("00000000000000001\r\n", limits: limits)
        #expect(fault == WireError(.chunkSizeTooLong(limit: 16), at: base + 16))
    }
}
