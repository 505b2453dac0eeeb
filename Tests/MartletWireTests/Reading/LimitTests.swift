import MartletWire
import Testing

@Suite("Limits of a head")
struct LimitTests {
    /// Feeds a machine growing pieces of an endless input, and returns the error and the number of bytes before it.
    private func fault(
        start: String, endless: String, limits: WireLimits = .default, upTo byteLimit: Int = 1 << 20
    ) -> (error: WireError?, byteCount: Int) {
        var machine = ClientMachine(limits: limits)
        machine.startRequest(method: "GET")
        var unread = Array(start.utf8)
        let piece = Array(String(repeating: endless, count: max(1, 4096 / endless.utf8.count)).utf8)
        do throws(WireError) {
            while unread.count < byteLimit {
                unread += piece
                _ = try machine.receive(unread.span)
            }
            return (nil, unread.count)
        } catch {
            return (error, unread.count)
        }
    }

    private func limits(_ change: (inout WireLimits) -> Void) -> WireLimits {
        var limits = WireLimits()
        change(&limits)
        return limits
    }

    @Test("An endless field line is rejected at 64 KiB, before its end")
    func endlessLine() {
        let outcome = fault(start: "HTTP/1.1 200 OK\r\nA: ", endless: "a")
        #expect(outcome.error == WireError(.lineTooLong(limit: 65_536), at: 17 + 65_536))
        #expect(outcome.byteCount < 17 + 65_536 + 8192)
    }

    @Test("An endless status line is rejected at 64 KiB")
    func endlessStatusLine() {
        let outcome = fault(start: "HTTP/1.1 200 ", endless: "a")
        #expect(outcome.error == WireError(.lineTooLong(limit: 65_536), at: 65_536))
    }

    @Test("A head of many long lines is rejected at 256 KiB")
    func endlessHead() {
        let line = "A: " + String(repeating: "b", count: 4091) + "\r\n"
        let outcome = fault(start: "HTTP/1.1 200 OK\r\n", endless: line)
        #expect(outcome.error == WireError(.headTooLarge(limit: 262_144), at: 262_144))
    }

    @Test("The 1,001st line of a head is rejected")
    func manyLines() {
        let outcome = fault(start: "HTTP/1.1 200 OK\r\n", endless: "A:\r\n")
        #expect(outcome.error == WireError(.tooManyLines(limit: 1000), at: 17 + 999 * 4))
    }

    @Test("No setting allows more lines than the field types can hold")
    func lineCountMaximum() {
        let limits = limits {
            $0.lineCountLimit = .max
            $0.headByteLimit = .max
        }
        let outcome = fault(start: "HTTP/1.1 200 OK\r\n", endless: "A:\r\n", limits: limits)
        #expect(outcome.error == WireError(.tooManyLines(limit: 65_000), at: 17 + 64_999 * 4))
    }

    @Test("Too many empty lines before the status line are rejected")
    func manyEmptyLines() {
        let outcome = fault(start: "", endless: "\r\n")
        #expect(outcome.error == WireError(.tooManyLines(limit: 1000), at: 2000))
    }

    @Test("Too many folded lines are rejected")
    func manyFolds() {
        let outcome = fault(start: "HTTP/1.1 200 OK\r\nA: b\r\n", endless: " c\r\n")
        #expect(outcome.error?.code == .tooManyLines(limit: 1000))
    }

    @Test("A line at the limit is accepted, and one byte more is rejected")
    func lineBoundary() {
        let limits = limits { $0.lineByteLimit = 30 }
        let fits = "HTTP/1.1 204 No Content\r\nA: " + String(repeating: "b", count: 25) + "\r\n\r\n"
        #expect(WireScript(fits, limits: limits).run().isComplete)
        let exceeds = "HTTP/1.1 204 No Content\r\nA: " + String(repeating: "b", count: 26) + "\r\n\r\n"
        #expect(WireScript(exceeds, limits: limits).run().fault == WireError(.lineTooLong(limit: 30), at: 55))
    }

    @Test("A head at the limit is accepted, and one byte more is rejected")
    func headBoundary() {
        let head = "HTTP/1.1 204 No Content\r\nA: b\r\n\r\n"
        let fitting = limits { $0.headByteLimit = head.utf8.count }
        #expect(WireScript(head, limits: fitting).run().isComplete)
        let exceeded = limits { $0.headByteLimit = head.utf8.count - 1 }
        let fault = WireScript(head, limits: exceeded).run().fault
        #expect(fault == WireError(.headTooLarge(limit: 32), at: 32))
    }

    @Test("The maximum number of lines is accepted, and one more is rejected")
    func lineCountBoundary() {
        let head = "HTTP/1.1 204 No Content\r\nA: b\r\n\r\n"
        #expect(WireScript(head, limits: limits { $0.lineCountLimit = 3 }).run().isComplete)
        let fault = WireScript(head, limits: limits { $0.lineCountLimit = 2 }).run().fault
        #expect(fault == WireError(.tooManyLines(limit: 2), at: 31))
    }

    @Test(
        "Zero, negative and extreme limits neither trap nor accept too much",
        arguments: [0, -1, Int.min])
    func absurdLimits(value: Int) {
        let all = limits {
            $0.headByteLimit = value
            $0.lineByteLimit = value
            $0.lineCountLimit = value
            $0.informationalResponseLimit = value
            $0.chunkExtensionByteLimit = value
            $0.trailerByteLimit = value
            $0.chunkSizeDigitLimit = value
        }
        let text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;a\r\nx\r\n0\r\n\r\n"
        #expect(WireScript(text, limits: all).run().fault != nil)
        var decoder = ChunkedDecoder(limits: all)
        #expect(throws: WireError.self) { try decoder.decode(Array("1\r\n".utf8).span) }
    }

    @Test("The largest possible limits do not overflow")
    func largestLimits() {
        let all = limits {
            $0.headByteLimit = .max
            $0.lineByteLimit = .max
            $0.lineCountLimit = .max
            $0.informationalResponseLimit = .max
            $0.chunkExtensionByteLimit = .max
            $0.trailerByteLimit = .max
            $0.chunkSizeDigitLimit = .max
        }
        let text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;a\r\nx\r\n0\r\nA: b\r\n\r\n"
        let outcome = WireScript(text, limits: all).run()
        #expect(outcome.body == "x")
        #expect(outcome.trailers?.count == 1)
    }

    @Test("A head of 200 KiB that arrives byte by byte is scanned once")
    func slowHead() {
        var machine = ClientMachine()
        machine.startRequest(method: "GET")
        let line = "A: " + String(repeating: "b", count: 50_000) + "\r\n"
        let text = "HTTP/1.1 204 No Content\r\n" + line + line + line + line + "\r\n"
        let bytes = Array(text.utf8)
        var unread: [UInt8] = []
        unread.reserveCapacity(bytes.count)
        var last: ClientMachine.Received?
        do throws(WireError) {
            for byte in bytes {
                unread.append(byte)
                last = try machine.receive(unread.span)
            }
        } catch {
            Issue.record(error)
        }
        #expect(last?.consumed == bytes.count)
    }

    @Test("The defaults match the documentation and stay equal when stored")
    func defaults() {
        let limits = WireLimits.default
        #expect(limits.headByteLimit == 262_144)
        #expect(limits.lineByteLimit == 65_536)
        #expect(limits.lineCountLimit == 1000)
        #expect(limits.informationalResponseLimit == 10)
        #expect(limits.chunkExtensionByteLimit == 16_384)
        #expect(limits.trailerByteLimit == 16_384)
        #expect(limits.chunkSizeDigitLimit == 16)
        #expect(limits.toleratesBareLineFeed)
        #expect(!limits.isStrict)
    }
}
