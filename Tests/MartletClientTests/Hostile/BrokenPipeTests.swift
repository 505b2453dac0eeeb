import MartletCore
import MartletTesting
import Testing

/// Writing to a closed connection raises SIGPIPE, which ends the process unless it is suppressed.
@Suite("Broken pipes", .serialized, .timeLimit(.minutes(20)))
struct BrokenPipeTests {
    private static func pieces(_ count: Int) -> AsyncStream<[UInt8]> {
        AsyncStream { continuation in
            for _ in 0..<count { continuation.yield([UInt8](repeating: 0x78, count: 64 * 1024)) }
            continuation.finish()
        }
    }

    @Test(
        "Writing after a reset is an error and does not end the process", arguments: HostileRoute.all,
        [true, false])
    func writeAfterReset(_ route: HostileRoute, isStreamed: Bool) async throws {
        for _ in 0..<10 {
            try await HostileScene.with(route, ServerScript(.expectRequestHead, .reset)) { scene in
                let body =
                    isStreamed
                    ? HTTPBody.stream { BrokenPipeTests.pieces(64) }
                    : .bytes([UInt8](repeating: 0x78, count: 4 << 20))
                let receipt = await scene.request(.post, body: body)
                #expect(receipt.strangeError == nil)
                #expect(
                    receipt.error?.code == .connectionLost, "\(String(describing: receipt.error))")
                #expect(receipt.error?.wasSent == true)
                #expect(await scene.next() == "good")
            }
        }
    }

    @Test(
        "Writing after the peer's end is an error and does not end the process", arguments: HostileRoute.all,
        [ScriptStep.close, .closeWithoutNotify])
    func writeAfterEnd(_ route: HostileRoute, _ end: ScriptStep) async throws {
        for _ in 0..<10 {
            try await HostileScene.with(route, ServerScript(.expectRequestHead, end)) { scene in
                let receipt = await scene.request(.post, body: .stream { BrokenPipeTests.pieces(64) })
                #expect(receipt.strangeError == nil)
                let codes: [HTTPError.Code?] = [.connectionLost, .emptyResponse]
                #expect(codes.contains(receipt.error?.code), "\(String(describing: receipt.error))")
                #expect(await scene.next() == "good")
            }
        }
    }

    @Test("A response sent before a reset of the upload is delivered", arguments: HostileRoute.all)
    func answerBeforeEnd(_ route: HostileRoute) async throws {
        let rejection = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 4\r\nConnection: close\r\n\r\nmuch"
        let script = ServerScript(.expectRequestHead, .send(rejection), .shutdownWriting, .readAll)
        try await HostileScene.with(route, script) { scene in
            let receipt = await scene.request(.post, body: .stream { BrokenPipeTests.pieces(64) })
            #expect(receipt.text == "much")
            #expect(await scene.next() == "good")
        }
    }
}
