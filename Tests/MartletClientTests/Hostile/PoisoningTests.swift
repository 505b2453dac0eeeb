import MartletContent
import MartletCookies
import MartletCore
import MartletHosts
import MartletTesting
import Testing

/// Content that a server inserts to be mistaken for another response or another part of a message.
@Suite("Response poisoning", .timeLimit(.minutes(20)))
struct PoisoningTests {
    private static let first = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
    private static let evil = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL"

    @Test(
        "A response sent on an idle connection closes the connection and is never delivered",
        arguments: HostileRoute.all)
    func lateResponse(_ route: HostileRoute) async throws {
        let script = ServerScript(
            .expectRequestHead, .send(PoisoningTests.first), .await("idle"), .send(PoisoningTests.evil),
            .signal("sent"),
            .awaitClose)
        try await HostileScene.with(route, script) { scene in
            #expect(await scene.request().text == "hello")
            scene.signals.raise("idle")
            try await scene.signals.wait(for: "sent")
            #expect(await scene.next() == "good")
            try await scene.recorder.waitForTranscript(ofConnection: 1)
        }
    }

    @Test(
        "Bytes on an idle connection close it immediately, without another request",
        arguments: HostileRoute.all)
    func closesAtOnce(_ route: HostileRoute) async throws {
        let script = ServerScript(
            .expectRequestHead, .send(PoisoningTests.first), .await("idle"), .send("E"), .awaitClose)
        try await HostileScene.with(route, script) { scene in
            #expect(await scene.request().text == "hello")
            scene.signals.raise("idle")
            try await scene.recorder.waitForOpenConnections(atMost: 0)
            #expect(await scene.next() == "good")
        }
    }

    @Test("A response sent before the request is never delivered", arguments: HostileRoute.all)
    func prematureResponse(_ route: HostileRoute) async throws {
        // On a new connection, bytes that arrive before the request look like a response to it. On a reused connection
        // they do not.
        let script = ServerScript(
            .expectRequestHead, .send(PoisoningTests.first + PoisoningTests.evil + PoisoningTests.evil),
            .awaitClose)
        try await HostileScene.with(route, script) { scene in
            #expect(await scene.request().text == "hello")
            #expect(await scene.next() == "good")
            #expect(await scene.next() == "good")
            #expect(scene.recorder.counts.connections == 2)
        }
    }

    @Test("A large body is delivered without the second response from the same write")
    func largeBody() async throws {
        let body = String(repeating: "x", count: 300_000)
        let text = "HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n\(body)\(PoisoningTests.evil)"
        for route in HostileRoute.all {
            try await HostileScene.with(route, ServerScript(.expectRequestHead, .send(text), .awaitClose)) {
                scene in
                #expect(await scene.request(isStreamed: true).text == body)
                #expect(await scene.next() == "good")
                try await scene.recorder.waitForTranscript(ofConnection: 1)
            }
        }
    }

    @Test(
        "The rest of an unread body never becomes the next response",
        arguments: HostileRoute.all)
    func abandonedBody(_ route: HostileRoute) async throws {
        let length = PoisoningTests.evil.utf8.count * 2
        let text =
            "HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\r\n\(PoisoningTests.evil)\(PoisoningTests.evil)"
        let script = ServerScript(
            .expectRequestHead, .send(text), .expectRequestHead, .send(HostileScene.good), .awaitClose)
        try await HostileScene.with(route, script) { scene in
            let request = try HTTPRequest(method: .get, url: scene.base)
            try await scene.session.stream(request) { _, _ in }
            #expect(await scene.next() == "good")
        }
    }

    @Test("Fields of an early hint are reported separately and not as fields of the response")
    func earlyHints() async throws {
        let text =
            "HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\nSet-Cookie: a=EVIL\r\n\r\n"
            + PoisoningTests.first
        try await HostileScene.with(.plain, ServerScript(.expectRequestHead, .send(text), .awaitClose)) {
            scene in
            let receipt = await scene.request()
            #expect(receipt.text == "hello")
            #expect(!receipt.isPoisoned)
            #expect(receipt.fields.count == 1)
            #expect(receipt.interim.map(\.status.code) == [103])
            #expect(receipt.interim.first?.headerFields.map(\.value) == ["</style.css>", "a=EVIL"])
        }
    }

    @Test("Trailers are delivered as trailers and never merged into the head", arguments: [false, true])
    func trailers(isStreamed: Bool) async throws {
        let text =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n"
            + "Set-Cookie: a=b\r\nContent-Length: 1\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n"
        let script = ServerScript(
            .expectRequestHead, .send(text), .expectRequestHead, .send(HostileScene.good), .awaitClose)
        try await HostileScene.with(.plain, script) { scene in
            let receipt = await scene.request(isStreamed: isStreamed)
            #expect(receipt.text == "hello")
            #expect(receipt.fields.map(\.name) == [.transferEncoding])
            #expect(receipt.trailers?[.setCookie] == "a=b")
            #expect(receipt.trailers?.count == 4)
            #expect(await scene.next() == "good")
            #expect(scene.recorder.counts.connections == 1)
        }
    }

    @Test(
        "A body that waits for 100 is not sent to a server that responds with a flood or an upgrade",
        arguments: [
            (String(repeating: "HTTP/1.1 102 Processing\r\n\r\n", count: 11), HTTPError.Code.limitExceeded),
            ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", .protocolViolation),
            ("HTTP/1.1 1000 Continue\r\n\r\n", .protocolViolation),
        ])
    func expectation(_ text: String, _ code: HTTPError.Code) async throws {
        let script = ServerScript(.expectRequestHead, .send(text), .awaitClose)
        try await HostileScene.with(
            .plain, script, configure: { $0.continueTimeout = TestTimeouts.long },
            run: { scene in
                let receipt = await scene.request(
                    .post, headers: [.expect: "100-continue"], body: .text("SECRET"))
                #expect(receipt.error?.code == code)
                #expect(await scene.next() == "good")
                let sent = try await scene.recorder.waitForTranscript(ofConnection: 1)
                #expect(!String(decoding: sent, as: UTF8.self).contains("SECRET"))
            })
    }

    @Test("A folded field is one value without line breaks")
    func fold() async throws {
        let text = "HTTP/1.1 200 OK\r\nX-A: one\r\n two\r\n\t three\r\nContent-Length: 5\r\n\r\nhello"
        try await HostileScene.with(.plain, ServerScript(.expectRequestHead, .send(text), .awaitClose)) {
            scene in
            let receipt = await scene.request()
            #expect(receipt.text == "hello")
            #expect(receipt.fields.map(\.value) == ["one two three", "5"])
        }
    }

    @Test(
        "A raw body is delivered with its framing, which is still parsed",
        arguments: [false, true])
    func rawBody(isStreamed: Bool) async throws {
        var options = RequestOptions()
        options.returnsRawBody = true
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n\r\n"
        let whole = "5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n"
        let broken = "5\r\nhelloXXEVIL"
        try await HostileScene.with(
            .plain, ServerScript(.expectRequestHead, .send(head + whole + PoisoningTests.evil), .awaitClose)
        ) { scene in
            let receipt = await scene.request(isStreamed: isStreamed, options: options)
            #expect(receipt.error == nil)
            #expect(receipt.text == whole)
            #expect(await scene.next() == "good")
        }
        let kept = ServerScript(
            .expectRequestHead, .send(head + whole), .expectRequestHead, .send(HostileScene.good), .awaitClose
        )
        try await HostileScene.with(.plain, kept) { scene in
            let receipt = await scene.request(isStreamed: isStreamed, options: options)
            #expect(receipt.text == whole)
            #expect(await scene.next() == "good")
            #expect(scene.recorder.counts.connections == 1)
        }
        try await HostileScene.with(
            .plain, ServerScript(.expectRequestHead, .send(head + broken), .awaitClose)
        ) {
            scene in
            let receipt = await scene.request(isStreamed: isStreamed, options: options)
            #expect(receipt.error?.code == .protocolViolation)
            #expect(!receipt.isPoisoned)
            #expect(await scene.next() == "good")
        }
    }

    @Test(
        "A body is readable as text for any Content-Type value",
        arguments: [
            "", ";", "text", "text/", "/", "text/plain; charset", "text/plain; charset=",
            "text/plain; charset=\"", "text/plain; charset=x",
            "text/plain; charset=\"utf-16\"", "text/plain; charset=utf-16le", "text/plain; charset=\\",
            "text/plain;;;;charset=latin1",
            "text/plain; charset=\"\\", "a/b/c", "text/plain; charset=utf-8; charset=utf-16",
        ])
    func contentTypes(_ type: String) async throws {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: \(type)\r\nContent-Length: 5\r\n\r\n"
        let body: [UInt8] = [0xFF, 0xFE, 0xD8, 0x00, 0x80]
        try await HostileScene.with(
            .memory, ServerScript(.expectRequestHead, .send(Array(head.utf8) + body), .awaitClose)
        ) {
            scene in
            let exchange = try await scene.session.get(scene.base)
            #expect(!exchange.text.isEmpty)
        }
    }

    @Test("A response with 998 fields is delivered with every field separate")
    func manyFields() async throws {
        let fields = (0..<997).map { "Set-Cookie: c\($0)=1\r\n" }.joined()
        let text = "HTTP/1.1 200 OK\r\n\(fields)Content-Length: 5\r\n\r\nhello"
        try await HostileScene.with(.plain, ServerScript(.expectRequestHead, .send(text), .awaitClose)) {
            scene in
            let receipt = await scene.request()
            #expect(receipt.fields[values: .setCookie].count == 997)
        }
    }
}
