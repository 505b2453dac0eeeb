import MartletContent
import MartletCaching
import MartletCore
import MartletTesting
import MartletTransport
import MartletWire
import Testing

/// Every hostile peer over every route, collected and streamed.
@Suite("Hostile peers", .timeLimit(.minutes(20)))
struct HostilePeerTests {
    @Test(
        "The outcome of a hostile peer matches its row, and other calls are unaffected",
        arguments: HostilePeer.all.filter { !$0.isRestless })
    func peer(_ peer: HostilePeer) async throws {
        try await HostilePeerTests.meet(peer)
    }

    @Test(
        "The outcome of a hostile peer that never stops matches its row, and other calls are unaffected", .serialized,
        arguments: HostilePeer.all.filter(\.isRestless))
    func restlessPeer(_ peer: HostilePeer) async throws {
        try await HostilePeerTests.meet(peer)
    }

    private static func meet(_ peer: HostilePeer) async throws {
        for route in peer.routes {
            for isStreamed in HostilePeerTests.manners(of: peer, route) {
                try await HostilePeerTests.meet(peer, route, isStreamed: isStreamed)
            }
        }
    }

    @Test("Every row has its own name")
    func names() {
        let names = HostilePeer.all.map(\.name)
        #expect(Set(names).count == names.count)
    }

    @Test("A rejected response never becomes a file")
    func downloads() async throws {
        let directory = try TemporaryDirectory()
        for peer in HostilePeer.all {
            switch peer.fate {
            case .rejected, .truncated, .undecodable: break
            default: continue
            }
            try await HostileScene.with(.memory, ServerScript(peer.script)) { scene in
                let path = FilePath(directory.path + "/file")
                let error = await #expect(throws: HTTPError.self, "\(peer.name)") {
                    try await scene.session.download(HTTPRequest(method: .get, url: scene.base), to: path)
                }
                #expect(error?.code == peer.fate.code, "\(peer.name)")
                let left = try directory.contents()
                #expect(left.isEmpty, "\(peer.name)")
            }
        }
    }

    /// Returns the forms of the call to test: collected (`false`) and streamed (`true`). TLS is independent of the form
    /// and slow, and timeouts take time, so these run collected only.
    private static func manners(of peer: HostilePeer, _ route: HostileRoute) -> [Bool] {
        switch peer.fate {
        case .timedOut: [false]
        case .undecodable, .tooLarge: [false]
        default: route == .tls || route == .handshake ? [false] : [false, true]
        }
    }

    private static func meet(_ peer: HostilePeer, _ route: HostileRoute, isStreamed: Bool) async throws {
        var request = peer.request
        while try await !isMet(peer, asking: request, route, isStreamed: isStreamed) {
            guard case .timedOut(let clock, _) = peer.fate, let span = request.span(of: clock) else { return }
            try #require(span * 3 < TestTimeouts.ending, "\(route)")
            request = request.with(clock, span * 3)
        }
    }

    /// Sends the request to a peer and checks the outcome.
    ///
    /// - Returns: Whether the timeout expired in the expected phase. On a slow machine it may expire earlier, and the
    ///   test is then invalid.
    private static func isMet(
        _ peer: HostilePeer, asking request: HostileRequest, _ route: HostileRoute, isStreamed: Bool
    ) async throws -> Bool {
        var isInTime = true
        let manner = "\(route), \(isStreamed ? "streamed" : "collected")"
        let warmUp: [ScriptStep] = [.expectRequestHead, .send(HostileScene.good)]
        let script = ServerScript((peer.isWarmedUp ? warmUp : []) + peer.script)
        try await HostileScene.with(route, script) { scene in
            if peer.isWarmedUp { #expect(await scene.next() == "good", "\(manner)") }
            let start = MonotonicTime.now()
            let receipt = await scene.request(request, isStreamed: isStreamed)
            let elapsed = MonotonicTime.now().since(start)
            if case .timedOut(let clock, let phase) = peer.fate, let error = receipt.error,
                error.timeout == clock, error.phase.precedes(phase)
            {
                isInTime = false
                return
            }
            judge(receipt, peer, manner)
            judge(elapsed, peer, request, manner)
            #expect(!receipt.isPoisoned, "\(manner)")
            await scene.expectBaseline(manner)
            if route == .memory, let limit = peer.takenLimit {
                // In memory, all sent bytes were read except for the stream buffer, the receive buffer and one piece.
                #expect(scene.recorder.counts.bytesSent < limit + 512 * 1024, "took too much: \(manner)")
            }
            #expect(await scene.next() == "good", "\(manner)")
            await scene.expectBaseline(manner)
            if route == .handshake { return }
            // If only the coding is invalid, the framing is valid and the connection may be reused.
            if case .undecodable = peer.fate { return }
            #expect(scene.recorder.counts.connections == (peer.fate.isKept ? 1 : 2), "\(manner)")
        }
        return isInTime
    }

    /// Checks that a timeout error comes after its duration, and any other error immediately.
    private static func judge(
        _ elapsed: Duration, _ peer: HostilePeer, _ request: HostileRequest, _ manner: String
    ) {
        var span = Duration.zero
        if case .timedOut(let clock, _) = peer.fate { span = request.span(of: clock) ?? .zero }
        #expect(elapsed >= span, "\(manner)")
        #expect(elapsed < span + TestTimeouts.ending, "\(manner)")
    }

    private static func judge(_ receipt: HostileReceipt, _ peer: HostilePeer, _ manner: String) {
        #expect(receipt.strangeError == nil, "\(manner)")
        if case .answered(let body, _) = peer.fate {
            #expect(receipt.error == nil, "\(manner)")
            #expect(receipt.text == body, "\(manner)")
            return
        }
        guard let error = receipt.error else {
            Issue.record("not refused but answered \(receipt.text.debugDescription): \(manner)")
            return
        }
        #expect(error.code == peer.fate.code, "\(manner): \(error)")
        #expect(error.attempts == 1, "\(manner)")
        switch peer.fate {
        case .answered, .tooLarge: break
        case .unreachable: #expect(error.phase == .tlsHandshake, "\(manner)")
        case .rejected(let code, let offset):
            let fault = error.underlying as? WireError
            #expect(fault?.code == code, "\(manner): \(error)")
            if let offset { #expect(fault?.offset == offset, "\(manner): \(error)") }
        case .truncated: #expect((error.underlying as? WireError)?.isEndOfStream == true, "\(manner)")
        case .undecodable(let fault): #expect(error.underlying as? ContentDecodingError == fault, "\(manner)")
        case .timedOut(let clock, let phase):
            #expect(error.timeout == clock, "\(manner): \(error)")
            #expect(error.phase == phase, "\(manner): \(error)")
        case .reset: #expect((error.underlying as? SystemError)?.isReset == true, "\(manner): \(error)")
        case .insecure(let reason):
            let kind = (error.underlying as? TLSError)?.kind
            #expect(kind.flatMap { HostileOutcome.Insecurity($0) } == reason, "\(manner): \(error)")
            #expect(error.phase == .tlsHandshake, "\(manner)")
        }
        let isAnswering = error.phase == .awaitingHead || error.phase == .receivingBody
        #expect(error.wasSent == (isAnswering || error.phase == .sending), "\(manner)")
    }
}
