import MartletContent
import MartletCore
import MartletStreams
import MartletTesting
import Testing

/// Each public limit, set below its default, is exact to the unit.
@Suite("Configured limits", .timeLimit(.minutes(20)))
struct LimitSettingTests {
    private static let head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
    private static let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

    /// Returns the error code for a response, or `nil` without an error.
    private func code(
        _ text: String, body: [UInt8] = [], closes: Bool = false,
        _ configure: (inout SessionConfiguration) -> Void
    ) async throws -> HTTPError.Code? {
        var code: HTTPError.Code?
        let script = ServerScript(
            .expectRequestHead, .send(Array(text.utf8) + body), closes ? .close : .awaitClose)
        try await HostileScene.with(.memory, script, configure: configure) { scene in
            let receipt = await scene.request()
            #expect(receipt.error != nil || receipt.strangeError == nil)
            code = receipt.error?.code
        }
        return code
    }

    @Test("headByteLimit limits the bytes of a response's head")
    func head() async throws {
        let count = LimitSettingTests.head.utf8.count
        for (limit, expected) in [
            (count + 1, nil), (count - 1, HTTPError.Code.limitExceeded), (0, .limitExceeded),
        ] {
            let code = try await code(LimitSettingTests.head + "hello") {
                $0.wireLimits.headByteLimit = limit
            }
            #expect(code == expected, "\(limit)")
        }
    }

    @Test("lineByteLimit limits the bytes of one line")
    func line() async throws {
        let line = "Content-Length: 5\r\n".utf8.count
        for (limit, expected) in [(line + 1, nil), (line - 1, HTTPError.Code.limitExceeded)] {
            let code = try await code(LimitSettingTests.head + "hello") {
                $0.wireLimits.lineByteLimit = limit
            }
            #expect(code == expected, "\(limit)")
        }
    }

    @Test("lineCountLimit limits the lines of a head")
    func lineCount() async throws {
        for (limit, expected) in [(3, nil), (2, HTTPError.Code.limitExceeded)] {
            let code = try await code(LimitSettingTests.head + "hello") {
                $0.wireLimits.lineCountLimit = limit
            }
            #expect(code == expected, "\(limit)")
        }
    }

    @Test("informationalResponseLimit limits the number of interim responses")
    func informational() async throws {
        let text = "HTTP/1.1 103 A\r\n\r\nHTTP/1.1 103 A\r\n\r\n" + LimitSettingTests.head + "hello"
        for (limit, expected) in [(2, nil), (1, HTTPError.Code.limitExceeded), (0, .limitExceeded)] {
            let code = try await code(text) { $0.wireLimits.informationalResponseLimit = limit }
            #expect(code == expected, "\(limit)")
        }
    }

    @Test("chunkExtensionByteLimit limits the bytes of all chunk extensions")
    func chunkExtension() async throws {
        let text = LimitSettingTests.chunked + "5;abc\r\nhello\r\n0;def\r\n\r\n"
        for (limit, expected) in [(8, nil), (7, HTTPError.Code.limitExceeded)] {
            let code = try await code(text) { $0.wireLimits.chunkExtensionByteLimit = limit }
            #expect(code == expected, "\(limit)")
        }
    }

    @Test("trailerByteLimit limits the bytes of the trailers")
    func trailers() async throws {
        let text = LimitSettingTests.chunked + "5\r\nhello\r\n0\r\nA: bcd\r\n\r\n"
        for (limit, expected) in [(11, nil), (9, HTTPError.Code.limitExceeded)] {
            let code = try await code(text) { $0.wireLimits.trailerByteLimit = limit }
            #expect(code == expected, "\(limit)")
        }
    }

    @Test("chunkSizeDigitLimit limits the digits of a chunk size")
    func chunkSize() async throws {
        let text = LimitSettingTests.chunked + "005\r\nhello\r\n0\r\n\r\n"
        for (limit, expected) in [(3, nil), (2, HTTPError.Code.limitExceeded)] {
            let code = try await code(text) { $0.wireLimits.chunkSizeDigitLimit = limit }
            #expect(code == expected, "\(limit)")
        }
    }

    @Test("toleratesBareLineFeed decides whether a line feed alone ends a line")
    func bareLineFeed() async throws {
        let text = "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello"
        #expect(try await code(text) { _ in } == nil)
        #expect(try await code(text) { $0.wireLimits.toleratesBareLineFeed = false } == .protocolViolation)
    }

    @Test(
        "isStrict rejects deviations that are tolerated by default",
        arguments: [
            "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            "X-A: a\r\n b\r\nContent-Length: 5\r\n\r\nhello",
            "X-A: a\nContent-Length: 5\r\n\r\nhello",
            "Transfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n0\r\n\r\n",
        ])
    func strict(_ lines: String) async throws {
        let text = "HTTP/1.1 200 OK\r\n" + lines
        #expect(try await code(text) { _ in } == nil)
        #expect(try await code(text) { $0.wireLimits.isStrict = true } == .protocolViolation)
    }

    @Test("bufferedBodyLimit limits bodies with a length, in chunks and until the end")
    func body() async throws {
        for text in [LimitSettingTests.head + "hello", LimitSettingTests.chunked + "5\r\nhello\r\n0\r\n\r\n"] {
            #expect(try await code(text) { $0.bufferedBodyLimit = .bytes(5) } == nil)
            #expect(try await code(text) { $0.bufferedBodyLimit = .bytes(4) } == .bodyTooLarge)
        }
        let open = "HTTP/1.1 200 OK\r\n\r\nhello"
        #expect(try await code(open, closes: true) { $0.bufferedBodyLimit = .bytes(5) } == nil)
        #expect(try await code(open, closes: true) { $0.bufferedBodyLimit = .bytes(4) } == .bodyTooLarge)
    }

    @Test("The limit for collecting a stream is exact to the byte")
    func collectedStream() async throws {
        for (limit, isWhole) in [(5, true), (4, false), (0, false)] {
            let script = ServerScript(
                .expectRequestHead, .send(LimitSettingTests.head + "hello"), .awaitClose)
            try await HostileScene.with(.memory, script) { scene in
                let request = try HTTPRequest(method: .get, url: scene.base)
                do {
                    let body = try await scene.session.stream(request) { _, body in
                        try await body.collect(upTo: .bytes(limit))
                    }
                    #expect(body.count == 5)
                    #expect(isWhole)
                } catch let error as HTTPError {
                    #expect(error.code == .bodyTooLarge)
                    #expect(!isWhole)
                }
            }
        }
    }

    @Test("The bodyLimit of a call limits a stream")
    func streamLimit() async throws {
        var options = RequestOptions()
        options.bodyLimit = .bytes(4)
        for text in [LimitSettingTests.head + "hello", LimitSettingTests.chunked + "5\r\nhello\r\n0\r\n\r\n"] {
            let script = ServerScript(
                .expectRequestHead, .send(text), .expectRequestHead, .send(HostileScene.good), .awaitClose)
            try await HostileScene.with(.memory, script) { scene in
                let receipt = await scene.request(isStreamed: true, options: options)
                #expect(receipt.error?.code == .bodyTooLarge)
                #expect(receipt.body.count <= 4)
                #expect(await scene.next() == "good")
            }
        }
    }

    @Test("bufferedBodyLimit counts decoded bytes")
    func decodedBody() async throws {
        let body = Deflated.bytes(Array(repeating: 0x78, count: 1000), as: .gzip)
        let text = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: \(body.count)\r\n\r\n"
        #expect(try await code(text, body: body) { $0.bufferedBodyLimit = .bytes(1000) } == nil)
        #expect(try await code(text, body: body) { $0.bufferedBodyLimit = .bytes(999) } == .bodyTooLarge)
    }

    @Test("More fields than HTTPFields can hold do not end the process, for any limits")
    func moreFieldsThanCanBeHeld() async throws {
        let flood = String(repeating: "A:\r\n", count: 70_000)
        let texts = [
            "HTTP/1.1 200 OK\r\n\(flood)Content-Length: 5\r\n\r\nhello",
            "HTTP/1.1 103 Early\r\n\(flood)\r\n" + LimitSettingTests.head + "hello",
            LimitSettingTests.chunked + "5\r\nhello\r\n0\r\n\(flood)\r\n",
        ]
        for text in texts {
            let code = try await code(text) {
                $0.wireLimits.lineCountLimit = .max
                $0.wireLimits.headByteLimit = .max
                $0.wireLimits.trailerByteLimit = .max
            }
            #expect(code == .limitExceeded)
        }
    }
}
