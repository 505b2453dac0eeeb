import MartletClient
import MartletTesting
import Testing

/// Every hostile peer over every route, collected and streamed.
@Suite("Hostile peers", .serialized, .timeLimit(.minutes(3)))
struct HostilePeerTests {
    @Test("A status line that is none is refused", arguments: HostilePeer.statusLines)
    func statusLine(_ peer: HostilePeer) async throws {
        try await HostilePeerTests.meet(peer)
    }

    @Test("Ambiguous framing is resolved safely or refused", arguments: HostilePeer.framings)
    func framing(_ peer: HostilePeer) async throws {
        try await HostilePeerTests.meet(peer)
    }

    @Test("Malformed chunks are refused", arguments: HostilePeer.chunks)
    func chunk(_ peer: HostilePeer) async throws {
        try await HostilePeerTests.meet(peer)
    }

    @Test("Malformed heads are refused", arguments: HostilePeer.heads)
    func head(_ peer: HostilePeer) async throws {
        try await HostilePeerTests.meet(peer)
    }

    @Test("Interim responses confuse nobody", arguments: HostilePeer.interims)
    func interim(_ peer: HostilePeer) async throws {
        try await HostilePeerTests.meet(peer)
    }

    @Test("What is cut short is an error", arguments: HostilePeer.truncations)
    func truncation(_ peer: HostilePeer) async throws {
        try await HostilePeerTests.meet(peer)
    }

    @Test("Bytes behind a response never become the next one", arguments: HostilePeer.poisons)
    func poison(_ peer: HostilePeer) async throws {
        try await HostilePeerTests.meet(peer)
    }

    @Test("No response that is refused becomes a file")
    func downloads() async throws {
        let folder = try TemporaryFolder()
        let peers =
            HostilePeer.statusLines + HostilePeer.framings + HostilePeer.chunks + HostilePeer.heads
            + HostilePeer.interims + HostilePeer.truncations
        for peer in peers {
            guard case .refused(let code, _) = peer.fate else { continue }
            let script = ServerScript(
                .expectRequestHead, .send(peer.bytes), peer.closes ? .close : .awaitClose)
            try await HostileScene.with(.memory, script) { scene in
                let path = FilePath(folder.path + "/file")
                let error = await #expect(throws: HTTPError.self, "\(peer.name)") {
                    try await scene.session.download(scene.base, to: path)
                }
                #expect(error?.code == code, "\(peer.name)")
                let left = try folder.contents()
                #expect(left.isEmpty, "\(peer.name)")
            }
        }
    }

    /// Meets a peer over every route, in both ways of taking an answer.
    static func meet(_ peer: HostilePeer) async throws {
        for route in HostileRoute.allCases {
            // TLS is below what tells the two ways apart, and costs the most.
            for isStreamed in route == .tls ? [false] : [false, true] {
                try await meet(peer, route, isStreamed: isStreamed)
            }
        }
    }

    private static func meet(_ peer: HostilePeer, _ route: HostileRoute, isStreamed: Bool) async throws {
        var isKept = false
        if case .answered(_, isKept: true) = peer.fate { isKept = true }
        var steps: [ScriptStep] = [.expectRequestHead, .send(peer.bytes)]
        if isKept { steps += [.expectRequestHead, .send(HostileScene.good)] }
        steps.append(peer.closes ? .close : .awaitClose)
        let manner = "\(route), \(isStreamed ? "streamed" : "collected")"
        try await HostileScene.with(route, ServerScript(steps)) { scene in
            let receipt = await scene.request(peer.method, isStreamed: isStreamed)
            judge(receipt, peer.fate, manner)
            #expect(!receipt.isPoisoned, "\(manner)")
            #expect(scene.session.poolStatus.leased == 0, "\(manner)")
            #expect(await scene.next() == "good", "\(manner)")
            #expect(scene.ledger.counts.connections == (isKept ? 1 : 2), "\(manner)")
            if !isKept {
                let sent = try await scene.ledger.waitForTranscript(ofConnection: 1)
                let text = String(decoding: sent, as: UTF8.self)
                #expect(!text.contains("/next"), "the connection was used again: \(manner)")
            }
        }
    }

    private static func judge(_ receipt: HostileReceipt, _ fate: HostilePeer.Fate, _ manner: String) {
        #expect(receipt.strangeError == nil, "\(manner)")
        switch fate {
        case .answered(let body, _):
            #expect(receipt.error == nil, "\(manner)")
            #expect(receipt.text == body, "\(manner)")
        case .refused(let code, let offset):
            guard let error = receipt.error else {
                Issue.record("not refused but answered \(receipt.text.debugDescription): \(manner)")
                return
            }
            #expect(error.code == code, "\(manner): \(error)")
            #expect(error.wasSent, "\(manner)")
            if let offset {
                #expect(error.message.contains("(at byte \(offset) of the message)"), "\(manner): \(error)")
            } else if code == .protocolViolation || code == .limitExceeded {
                #expect(error.message.contains("(at byte "), "\(manner): \(error)")
            }
        }
    }
}
