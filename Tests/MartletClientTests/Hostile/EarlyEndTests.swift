import MartletContent
import MartletCore
import MartletTesting
import MartletWire
import Testing

/// Responses that end at every byte, for each framing, on sockets and in memory: with a graceful end, with a reset, and
/// over TLS with and without a close_notify.
@Suite("Early ends", .timeLimit(.minutes(20)))
struct EarlyEndTests {
    @Test(
        "A response that ends early, at any byte, is an error that reports the truncation",
        arguments: CutFraming.all, CutKind.allCases)
    func cuts(_ framing: CutFraming, _ ending: CutKind) async throws {
        for isStreamed in ending.isSecure ? [false] : [false, true] {
            try await cut(framing, ending, isStreamed: isStreamed)
        }
    }

    private func cut(_ framing: CutFraming, _ ending: CutKind, isStreamed: Bool) async throws {
        let whole = framing.whole
        // An honest response follows every cut. Over TLS, which costs a handshake, it follows every eighth cut.
        func isFollowed(_ count: Int) -> Bool { !ending.isSecure || count % 8 == 0 || count == whole.count }
        let scripts = (0...whole.count).flatMap { count -> [ServerScript] in
            let cut = ServerScript(.expectRequestHead, .send(Array(whole.prefix(count))), ending.step)
            return isFollowed(count) ? [cut, .respond(CutKind.good)] : [cut]
        }
        try await ending.withPeer(scripts) { scene in
            for count in 0...whole.count {
                let receipt = await scene.request(isStreamed: isStreamed)
                let place = "after \(count) of \(whole.count) bytes, \(isStreamed ? "streamed" : "collected")"
                judge(receipt, framing, ending, count, place)
                if isFollowed(count) { #expect(await scene.next() == "good", "\(place)") }
                #expect(scene.session.poolStatus.leased == 0, "\(place)")
                #expect(scene.session.poolStatus.idle == 0, "\(place)")
            }
            await scene.expectBaseline("at the end")
            try await scene.recorder.waitForOpenConnections(atMost: 0)
            #expect(scene.recorder.counts.connections == scripts.count)
        }
    }

    private func judge(
        _ receipt: HostileReceipt, _ framing: CutFraming, _ ending: CutKind, _ count: Int, _ place: String
    ) {
        #expect(receipt.strangeError == nil, "\(place)")
        let delivered = receipt.error?.exchange?.body ?? receipt.body
        #expect(framing.payload.starts(with: delivered), "\(place)")
        guard let error = receipt.error else {
            #expect(framing.isWhole(after: count, ending), "answered \(place)")
            #expect(receipt.body.count == framing.payload.count || framing.isUntilClose, "\(place)")
            return
        }
        #expect(error.wasSent, "\(place)")
        if ending.isReset {
            // A reset may overtake the bytes, even those of a complete response.
            #expect(error.code == .connectionLost, "\(place): \(error)")
            return
        }
        #expect(!framing.isWhole(after: count, ending), "refused \(place): \(error)")
        if framing.isCut(inCoding: count, ending) {
            #expect(error.code == .contentDecodingFailed, "\(place): \(error)")
            return
        }
        let isEmpty = framing.isInterim(after: count)
        #expect(error.code == (isEmpty ? .emptyResponse : .truncated), "\(place): \(error)")
        guard !isEmpty, case .truncated(let truncation)? = (error.underlying as? WireError)?.code else {
            return
        }
        switch truncation {
        case .head(let received):
            #expect(count < framing.headLength, "\(place)")
            #expect(
                received == framing.headByteCount(of: count),
                "\(place)")
        case .length(let expected, let received):
            #expect(Int(expected) == framing.body.count, "\(place)")
            #expect(Int(received) == count - framing.headLength, "\(place)")
        case .untilClose(let received): #expect(Int(received) == count - framing.headLength, "\(place)")
        case .chunked: #expect(count >= framing.headLength, "\(place)")
        }
    }

    @Test("A truncated stream delivers the received bytes and then throws")
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
        "A cut body of nearly unlimited announced size is a truncation, in a stream and in a download",
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
        let directory = try TemporaryDirectory()
        try await HostileScene.with(.plain, script) { scene in
            let error = await #expect(throws: HTTPError.self) {
                try await scene.session.save(
                    HTTPRequest(method: .get, url: scene.base), to: FilePath(directory.path + "/file")
                ) {
                    progress in
                    #expect(progress.fractionCompleted.map { $0 >= 0 && $0 <= 1 } ?? true)
                }
            }
            #expect(error?.code == .truncated)
            let left = try directory.contents()
            #expect(left.isEmpty)
        }
    }

    @Test("A download that is cut leaves no file")
    func leavesNoFile() async throws {
        let script = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"), .close)
        let directory = try TemporaryDirectory()
        try await HostileScene.with(.plain, script) { scene in
            await #expect(throws: HTTPError.self) {
                try await scene.session.download(
                    HTTPRequest(method: .get, url: scene.base + "/file"), to: FilePath(directory.path + "/file"))
            }
            let left = try directory.contents()
            #expect(left.isEmpty)
        }
    }
}
