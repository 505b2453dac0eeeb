import Martlet
import MartletTesting
import Testing

@Suite("Offline queue: bodies of responses")
struct ResponseBodyTests {
    /// A response with the given status whose body starts and never ends.
    private static func endless(_ status: Int) -> OfflineScene.StreamedResponse {
        { _ in
            var response = OriginResponse.text("begun, and never ended", status: status)
            response.fault = OriginFault(.stall, afterBodyBytes: 5)
            return response
        }
    }

    @Test("A body that never ends is cut after its timeout, and the lane continues")
    func cut() async throws {
        try await OfflineScene.run(answering: ResponseBodyTests.endless(200)) { scene in
            let queue = try await scene.queue { $0.responseBodyTime = .milliseconds(50) }
            for tag in ["first", "second"] {
                try await queue.submit(try scene.request(), body: .text("x"), lane: "a", tag: tag)
            }
            let delivered = try await queue.delivered(2)
            #expect(Set(delivered.keys) == ["first", "second"])
            #expect(delivered.values.allSatisfy { $0.statusCode == 200 })
            #expect(await queue.pendingCount == 0)
            await queue.close()
        }
    }

    @Test(
        "Closing uses the head that has arrived and does not wait for the body",
        arguments: [OfflineSubmission.Key.automatic, .none])
    func closing(_ key: OfflineSubmission.Key) async throws {
        let (begun, begin) = AsyncStream<Void>.makeStream()
        try await OfflineScene.run { _ in
            OriginResponse(
                body: .stream(length: nil) { body in
                    // This exceeds the buffers of both sockets, so the client is reading the body by then.
                    for _ in 0..<24 { try await body.write(Array(repeating: 65, count: 1 << 20)) }
                    begin.yield()
                    try await body.pause(for: .seconds(100_000))
                })
        } _: { scene in
            let queue = try await scene.queue {
                $0.responseBodyTime = .seconds(100_000)
                $0.request.bodyLimit = .mebibytes(64)
            }
            try await queue.submit(
                try scene.request(), body: .text("x"), as: OfflineSubmission(tag: "note", key: key))
            let events = queue.events
            for await _ in begun { break }
            await queue.close()
            var statuses: [Int] = []
            for await event in events {
                if case .delivered(_, let answer) = event { statuses.append(answer.statusCode) }
            }
            #expect(statuses == [200])
            let next = try await scene.queue()
            #expect(await next.pendingCount == 0)
            #expect(await next.restingCount == 0)
            await next.close()
        }
    }

    @Test("The status decides the result of a response with a cut body", arguments: [(400, true), (503, false)])
    func status(_ status: Int, _ isDead: Bool) async throws {
        try await OfflineScene.run(answering: ResponseBodyTests.endless(status)) { scene in
            let queue = try await scene.queue {
                $0.responseBodyTime = .milliseconds(50)
                $0.backoff = OfflineScene.never
            }
            try await queue.submit(try scene.request(), body: .text("x"))
            if isDead {
                let (_, letter) = try await queue.dead()
                #expect(letter.statusCode == status)
            } else {
                _ = try await queue.postponed(.refused)
            }
            await queue.close()
        }
    }
}
