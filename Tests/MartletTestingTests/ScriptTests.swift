import MartletTesting
import MartletTransport
import Testing

@Suite("Scripts")
struct ScriptTests {
    @Test("A script sends its exact bytes, and its transcript contains the received bytes")
    func playsSteps() async throws {
        let script = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort"), .close)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let client = try await RawClient(origin)
            try await client.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n")
            let all = String(decoding: try await client.receiveAll(), as: UTF8.self)
            #expect(all == "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort")
            let transcript = try await origin.recorder.waitForTranscript(ofConnection: 1)
            #expect(String(decoding: transcript, as: UTF8.self) == "GET / HTTP/1.1\r\nHost: t\r\n\r\n")
            #expect(origin.recorder.problems.isEmpty)
        }
    }

    @Test("Each connection runs the script of its number, and later ones run the last script")
    func assignsScripts() async throws {
        try await TestOrigin.withOrigin(scripts: ServerScript(.send("one")), ServerScript(.send("more"))) {
            origin in
            for expected in ["one", "more", "more"] {
                let client = try await RawClient(origin)
                #expect(String(decoding: try await client.receiveAll(), as: UTF8.self) == expected)
            }
        }
    }

    @Test("The end of a head is found across pieces, and the bytes after it are left for the next step")
    func splitsHeadFromBody() async throws {
        let script = ServerScript(
            .expectRequestHead, .signal("head"), .readBody(4), .expect("rest"), .send("done"))
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let client = try await RawClient(origin)
            for piece in ["PUT / HTTP/1.1\r", "\n\r", "\nbody"] { try await client.send(piece) }
            try await origin.signals.wait(for: "head")
            try await client.send("rest")
            #expect(String(decoding: try await client.receiveAll(), as: UTF8.self) == "done")
        }
    }

    @Test("Unexpected bytes end a script with a reset and a note")
    func notesSurprises() async throws {
        try await TestOrigin.withOrigin(scripts: ServerScript(.expect("hello"), .send("never"))) { origin in
            let client = try await RawClient(origin)
            try await client.send("help!")
            await #expect(throws: TransportError.self) { try await client.receiveAll() }
            try await origin.recorder.waitForOpenConnections(atMost: 0)
            #expect(origin.recorder.problems == [#"connection 1, step 1: expected "hello" and got "help!""#])
        }
    }

    @Test("A reset is observed as a reset, not as an end")
    func resets() async throws {
        try await TestOrigin.withOrigin(scripts: ServerScript(.send("x"), .await("go"), .reset)) { origin in
            let client = try await RawClient(origin)
            #expect(try await client.receive(exactly: 1) == Array("x".utf8))
            origin.signals.raise("go")
            await #expect(throws: TransportError.self) { try await client.receiveAll() }
        }
    }

    @Test("A script that ended its sending direction still receives")
    func shutsDownWriting() async throws {
        let script = ServerScript(.send("bye"), .shutdownWriting, .expect("late"), .signal("got it"))
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let client = try await RawClient(origin)
            #expect(String(decoding: try await client.receiveAll(), as: UTF8.self) == "bye")
            try await client.send("late")
            try await origin.signals.wait(for: "got it")
        }
    }

    @Test("Dripped and split bytes arrive complete and in order")
    func drips() async throws {
        let script = ServerScript(.drip("abc", every: .milliseconds(1)), .sendPieces("defghij", size: 3))
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let client = try await RawClient(origin)
            #expect(String(decoding: try await client.receiveAll(), as: UTF8.self) == "abcdefghij")
        }
    }

    @Test("A stalled script ends when the client disconnects")
    func stallEndsWithTheClient() async throws {
        try await TestOrigin.withOrigin(scripts: ServerScript(.signal("stalling"), .stall)) { origin in
            let client = try await RawClient(origin)
            try await origin.signals.wait(for: "stalling")
            #expect(origin.openConnectionCount == 1)
            client.close()
            try await origin.recorder.waitForOpenConnections(atMost: 0)
        }
    }

    @Test("A wait for a missing signal ends at the time limit")
    func signalsTimeOut() async throws {
        try await TestOrigin.withOrigin(scripts: ServerScript(.stall)) { origin in
            await #expect(throws: OriginError.timedOut(waitingFor: "the signal never")) {
                try await origin.signals.wait(for: "never", within: .milliseconds(5))
            }
        }
    }
}
