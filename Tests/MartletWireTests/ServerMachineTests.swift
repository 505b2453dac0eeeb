import MartletWire
import Testing

@Suite("Server exchanges")
struct ServerMachineTests {
    @Test("A request without a body is complete with its head")
    func plain() {
        let outcome = RequestScript("GET /a?b=c HTTP/1.1\r\nHost: x\r\n\r\n").run()
        let expected = RequestHead(method: "GET", target: "/a?b=c", fields: FieldBlock([("Host", "x")]))
        #expect(outcome.request == expected)
        #expect(outcome.isComplete)
        #expect(outcome.isReusable)
    }

    @Test("A request with a length has that body")
    func length() {
        let outcome = RequestScript("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello").run()
        #expect(outcome.body == "hello")
    }

    @Test("A chunked request is decoded with its trailers")
    func chunked() {
        let outcome = RequestScript(
            "PUT /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\n\r\n"
        ).run()
        #expect(outcome.body == "hello")
        #expect(outcome.trailers == FieldBlock([("A", "b")]))
    }

    @Test("An empty line before a request is skipped")
    func emptyLine() {
        #expect(RequestScript("\r\nGET / HTTP/1.1\r\n\r\n").run().request?.target == "/")
    }

    @Test(
        "An invalid request line is rejected",
        arguments: [
            ("GET", 3), ("GET /", 5), ("GET  / HTTP/1.1", 4), ("GET / HTTP/1.1 ", 14),
            ("GET /a b HTTP/1.1", 7),
            (" GET / HTTP/1.1", 0), ("G\u{7F}T / HTTP/1.1", 1), ("GET / http/1.1", 6),
            ("GET /\u{E9} HTTP/1.1", 5),
            ("GET /\r HTTP/1.1", 5),
        ])
    func garbage(line: String, offset: Int) {
        let fault = RequestScript("\(line)\r\nHost: x\r\n\r\n").run().fault
        #expect(fault == WireError(.invalidRequestLine, at: offset))
    }

    @Test("Another version of HTTP is rejected")
    func otherVersion() {
        #expect(RequestScript("PRI * HTTP/2.0\r\n\r\n").run().fault?.code == .unsupportedVersion)
    }

    @Test(
        "Ambiguous framing of a request is always rejected",
        arguments: [
            ("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", WireErrorCode.ambiguousFraming),
            ("Content-Length: 3\r\nContent-Length: 4\r\n", .conflictingContentLengths),
            ("Content-Length: +3\r\n", .invalidContentLength),
            ("Transfer-Encoding: gzip\r\n", .unsupportedTransferCoding),
            ("Transfer-Encoding: chunked, chunked\r\n", .repeatedChunked),
            ("Transfer-Encoding : chunked\r\n", .whitespaceBeforeColon),
        ])
    func ambiguous(fields: String, code: WireErrorCode) {
        #expect(RequestScript("POST / HTTP/1.1\r\n\(fields)\r\nabc").run().fault?.code == code)
    }

    @Test("Close and HTTP/1.0 end the connection")
    func persistence() {
        #expect(!RequestScript("GET / HTTP/1.1\r\nConnection: close\r\n\r\n").run().isReusable)
        #expect(!RequestScript("GET / HTTP/1.0\r\n\r\n").run().isReusable)
        #expect(RequestScript("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").run().isReusable)
    }

    @Test("An expectation of 100 is recognized only if a body follows")
    func expectation() throws {
        func expects(_ text: String) throws -> Bool {
            var machine = ServerMachine()
            _ = try machine.receive(Array(text.utf8).span)
            return machine.isExpectingContinue
        }
        #expect(try expects("POST / HTTP/1.1\r\nExpect: 100-Continue\r\nContent-Length: 5\r\n\r\n"))
        #expect(try !expects("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n"))
        #expect(try !expects("POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"))
        #expect(try !expects("GET / HTTP/1.1\r\nExpect: 100-continue\r\n\r\n"))
    }

    @Test("Pipelined requests are read one after the other")
    func pipeline() throws {
        var machine = ServerMachine()
        let first = Array("GET /1 HTTP/1.1\r\n\r\n".utf8)
        let both = first + Array("GET /2 HTTP/1.1\r\n\r\n".utf8)
        let head = try machine.receive(both.span)
        #expect(head.consumed == first.count)
        let rest = Array(both[head.consumed...])
        let end = try machine.receive(rest.span)
        #expect(end.consumed == 0)
        #expect(end.event == .end(trailers: nil))
        machine.nextRequest()
        guard case .head(let second, _) = try machine.receive(rest.span).event else {
            Issue.record("no second head")
            return
        }
        #expect(second.target == "/2")
    }

    @Test("The client can disconnect between requests but not inside one")
    func endOfStream() throws {
        var idle = ServerMachine()
        let idleEvent = try idle.receiveEndOfStream()
        #expect(idleEvent == nil)

        func faultOfEnd(after text: String) throws -> WireErrorCode? {
            var machine = ServerMachine()
            var unread = Array(text.utf8)
            while !unread.isEmpty {
                let received = try machine.receive(unread.span)
                unread.removeFirst(received.consumed)
                if received.event == .needMoreBytes { break }
            }
            do throws(WireError) {
                _ = try machine.receiveEndOfStream()
                return nil
            } catch {
                return error.code
            }
        }
        #expect(try faultOfEnd(after: "GET / HT") == .truncated(.head(received: 8)))
        let length = "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhel"
        #expect(try faultOfEnd(after: length) == .truncated(.length(expected: 5, received: 3)))
        let chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel"
        #expect(try faultOfEnd(after: chunked) == .truncated(.chunked(received: 3)))
    }

    @Test("A truncated body is reported at the same position however its head was split")
    func cutBodyOffset() throws {
        let bytes = Array("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhel".utf8)
        func fault(sizeOfPieces size: Int) throws -> WireError? {
            var machine = ServerMachine()
            var position = 0
            for end in stride(from: size, through: bytes.count, by: size) {
                while true {
                    let received = try machine.receive(bytes.span.extracting(position..<end))
                    position += received.consumed
                    if received.event == .needMoreBytes { break }
                }
            }
            do throws(WireError) {
                _ = try machine.receiveEndOfStream()
                return nil
            } catch {
                return error
            }
        }
        let whole = try fault(sizeOfPieces: bytes.count)
        #expect(whole?.code == .truncated(.length(expected: 5, received: 3)))
        #expect(try fault(sizeOfPieces: 1) == whole)
    }

    @Test("The next request cannot start before the current one ends")
    func nextOutOfOrder() {
        var machine = ServerMachine()
        machine.nextRequest()
        var fault: WireError?
        do throws(WireError) {
            _ = try machine.receive(Array("GET / HTTP/1.1\r\n\r\n".utf8).span)
        } catch {
            fault = error
        }
        #expect(fault == WireError(.illegalEvent, at: 0))
    }
}
