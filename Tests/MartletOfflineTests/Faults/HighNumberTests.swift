import Martlet
import MartletTesting
import Testing

@Suite("Offline queue: numbers")
struct HighNumberTests {
    @Test("A file whose name is the highest number there is ends no process")
    func highest() async throws {
        for name in ["\(UInt64.max).body", "\(UInt64.max).request.new", "\(UInt64.max).request"] {
            try await OfflineScene.run { scene in
                // The file comes when the directory is a queue's already: another one with such a file is refused.
                await (try await scene.queue()).close()
                try scene.folder.write([1, 2, 3], to: name)
                for _ in 0..<2 {
                    let queue = try await scene.queue { $0.sendsRequests = false }
                    let error = await #expect(throws: HTTPError.self) {
                        try await queue.submit(try scene.request())
                    }
                    #expect(error?.code == .limitExceeded)
                    await queue.close()
                }
            }
        }
    }
}
