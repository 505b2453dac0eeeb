import Martlet
import MartletTesting
import Testing

@Suite("Offline queue: record numbers")
struct HighNumberTests {
    @Test("A file with the highest possible number does not crash the process")
    func highest() async throws {
        for name in ["\(UInt64.max).body", "\(UInt64.max).request.new", "\(UInt64.max).request"] {
            try await OfflineScene.run { scene in
                // The file is created after the queue: a directory that is not a queue yet is rejected with such a
                // file.
                await (try await scene.queue()).close()
                try scene.directory.write([1, 2, 3], to: name)
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
