import MartletCore
import MartletWebSocket
import Testing

@Suite("WebSocket: the cases of the Autobahn test suite", .timeLimit(.minutes(10)))
struct AutobahnTests {
    private enum Arrival: CaseIterable {
        case together, byFrame, byByte

        func chunks(_ frames: [[UInt8]]) -> [[UInt8]] {
            switch self {
            case .together: [bytes(of: frames)]
            case .byFrame: frames
            case .byByte: bytes(of: frames).map { [$0] }
            }
        }
    }

    @Test("The client answers each case as it should, however the frames arrive", arguments: AutobahnCase.all)
    func replies(_ test: AutobahnCase) async throws {
        for arrival in Arrival.allCases {
            // Large cases are not sent byte by byte.
            if arrival == .byByte, bytes(of: test.frames).count > 70_000 { continue }
            try await withSocket { (socket, server) async throws in
                let client = Task { await echo(socket) }
                for chunk in arrival.chunks(test.frames) { server.transport.send(chunk) }
                var replies: [Reply] = []
                if !test.isClosedByFrames {
                    while replies.count < test.replies.count - 1, let reply = try await server.next() {
                        replies.append(reply)
                    }
                    server.send(close(1000))
                }
                while let reply = try await server.next() { replies.append(reply) }
                #expect(replies.last == test.replies.last, "\(test.number), \(arrival)")
                // Frames and messages of one read are answered by two tasks: the order between them is not defined. A
                // message before an error may be read, but can no longer be returned.
                let isComplete = Set(replies) == Set(test.replies) && replies.count == test.replies.count
                #expect(
                    isComplete || (test.isClosedByFrames && Set(replies).isSubset(of: test.replies)),
                    "\(test.number), \(arrival): \(replies.count) replies")
                server.transport.end()
                let error = await client.value
                let code = test.replies.last
                #expect((error == nil) == [.close(1000), .close(1001), .close(1005)].contains(code), "\(test.number)")
                #expect(await server.transport.isClosed.becomesTrue())
            }
        }
    }
}
