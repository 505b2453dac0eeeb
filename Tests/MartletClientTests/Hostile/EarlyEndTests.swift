import MartletClient
import MartletTesting
import Testing

/// Responses that end at every byte, for each framing, in order and by a reset.
@Suite("Early ends", .serialized, .timeLimit(.minutes(3)))
struct EarlyEndTests {
    enum Framing: CaseIterable {
        case length
        case chunked
        case untilClose

        var head: String {
            switch self {
            case .length: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
            case .chunked: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            case .untilClose: "HTTP/1.1 200 OK\r\nX-A: b\r\n\r\n"
            }
        }

        var body: String { self == .chunked ? "3\r\nhel\r\n2\r\nlo\r\n0\r\nX: y\r\n\r\n" : "hello" }
        var whole: [UInt8] { Array((head + body).utf8) }

        /// What a response that ends in order behind so many bytes comes to.
        func fate(after count: Int) -> HTTPError.Code? {
            if count == 0 { return .emptyResponse }
            if self == .untilClose, count >= head.utf8.count { return nil }
            return count == whole.count ? nil : .truncated
        }
    }

    @Test(
        "An end in order at every byte is an error, but where the response is whole",
        arguments: Framing.allCases, [false, true])
    func endsInOrder(_ framing: Framing, isStreamed: Bool) async throws {
        let whole = framing.whole
        for count in 0...whole.count {
            let script = ServerScript(.expectRequestHead, .send(Array(whole.prefix(count))), .close)
            try await HostileScene.with(.memory, script) { scene in
                let receipt = await scene.request(isStreamed: isStreamed)
                #expect(receipt.error?.code == framing.fate(after: count), "after \(count) bytes")
                #expect("hello".hasPrefix(receipt.text), "after \(count) bytes")
                #expect(await scene.next() == "good")
            }
        }
    }

    @Test(
        "A reset at every byte is an error, but where the length was met", arguments: Framing.allCases,
        [false, true])
    func resets(_ framing: Framing, isStreamed: Bool) async throws {
        let whole = framing.whole
        for count in 0...whole.count {
            let script = ServerScript(.expectRequestHead, .send(Array(whole.prefix(count))), .reset)
            try await HostileScene.with(.memory, script) { scene in
                let receipt = await scene.request(isStreamed: isStreamed)
                let isComplete = framing != .untilClose && count == whole.count
                // The reset may overtake the bytes, as it does on a network.
                if !isComplete || receipt.error != nil {
                    #expect(receipt.error?.code == .connectionLost, "after \(count) bytes")
                }
                #expect("hello".hasPrefix(receipt.text), "after \(count) bytes")
                #expect(await scene.next() == "good")
            }
        }
    }

    @Test(
        "A reset on a socket is an error that says so", arguments: [HostileRoute.plain, .tls],
        Framing.allCases)
    func resetsOnSocket(_ route: HostileRoute, _ framing: Framing) async throws {
        let head = framing.head.utf8.count
        for count in [0, 1, head - 1, head, head + 1, framing.whole.count - 1] {
            let script = ServerScript(
                .expectRequestHead, .send(Array(framing.whole.prefix(count))), .await("read"), .reset)
            try await HostileScene.with(route, script) { scene in
                scene.signals.raise("read")
                let receipt = await scene.request()
                #expect(receipt.error?.code == .connectionLost, "after \(count) bytes")
                #expect(receipt.error?.wasSent == true)
                #expect(await scene.next() == "good")
            }
        }
    }

    @Test(
        "An end at every byte over TLS with a close_notify is as one without TLS", arguments: Framing.allCases
    )
    func endsInOrderOverTLS(_ framing: Framing) async throws {
        let head = framing.head.utf8.count
        for count in [0, 1, head - 1, head, head + 1, framing.whole.count - 1, framing.whole.count] {
            let script = ServerScript(.expectRequestHead, .send(Array(framing.whole.prefix(count))), .close)
            try await HostileScene.with(.tls, script) { scene in
                let receipt = await scene.request()
                #expect(receipt.error?.code == framing.fate(after: count), "after \(count) bytes")
                #expect(await scene.next() == "good")
            }
        }
    }

    @Test(
        "An end over TLS without a close_notify is a truncation, but where the length was met",
        arguments: Framing.allCases)
    func cutsOverTLS(_ framing: Framing) async throws {
        let head = framing.head.utf8.count
        for count in [0, 1, head - 1, head, head + 1, framing.whole.count - 1, framing.whole.count] {
            let script = ServerScript(
                .expectRequestHead, .send(Array(framing.whole.prefix(count))), .closeWithoutNotify)
            try await HostileScene.with(.tls, script) { scene in
                for isStreamed in [false] {
                    let receipt = await scene.request(isStreamed: isStreamed)
                    let isComplete = framing != .untilClose && count == framing.whole.count
                    let fate: HTTPError.Code? = isComplete ? nil : count == 0 ? .emptyResponse : .truncated
                    #expect(
                        receipt.error?.code == fate,
                        "after \(count) bytes: \(String(describing: receipt.error))")
                }
                #expect(await scene.next() == "good")
            }
        }
    }

    @Test("A streamed body that is cut has delivered what came, and then throws")
    func deliversWhatCame() async throws {
        let script = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"), .close)
        try await HostileScene.with(.plain, script) { scene in
            let receipt = await scene.request(isStreamed: true)
            #expect(receipt.text == "hello")
            #expect(receipt.error?.code == .truncated)
            #expect(receipt.error?.message == "the stream ended after 5 of 9 bytes of the body")
        }
    }

    @Test(
        "A body announced endless and cut is a truncation, streamed and to a file",
        arguments: [
            "Content-Length: 9223372036854775807\r\n\r\nhello",
            "Transfer-Encoding: chunked\r\n\r\n7FFFFFFFFFFFFFFF\r\nhello",
        ])
    func endlessAndCut(_ rest: String) async throws {
        let script = ServerScript(.expectRequestHead, .send("HTTP/1.1 200 OK\r\n" + rest), .close)
        try await HostileScene.with(.plain, script) { scene in
            let receipt = await scene.request(isStreamed: true)
            #expect(receipt.text == "hello")
            #expect(receipt.error?.code == .truncated)
        }
        let folder = try TemporaryFolder()
        try await HostileScene.with(.plain, script) { scene in
            let error = await #expect(throws: HTTPError.self) {
                try await scene.session.download(scene.base, to: FilePath(folder.path + "/file")) {
                    progress in
                    #expect(progress.fractionCompleted.map { $0 >= 0 && $0 <= 1 } ?? true)
                }
            }
            #expect(error?.code == .truncated)
            let left = try folder.contents()
            #expect(left.isEmpty)
        }
    }

    @Test("A download that is cut leaves no file")
    func leavesNoFile() async throws {
        let script = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"), .close)
        let folder = try TemporaryFolder()
        try await HostileScene.with(.plain, script) { scene in
            await #expect(throws: HTTPError.self) {
                try await scene.session.download(scene.base + "/file", to: FilePath(folder.path + "/file"))
            }
            let left = try folder.contents()
            #expect(left.isEmpty)
        }
    }
}
