import Martlet
import MartletDownloads
import MartletStorage
import MartletTesting
import Testing

@Suite("Transfers in the background", .timeLimit(.minutes(10)))
struct BackgroundTests {
    @Test("The configuration for transfers that outlive the process has no timeout that ends long ones")
    func configuration() {
        let configuration = SessionConfiguration.background
        #expect(configuration.timeouts.total == nil && configuration.timeouts.poolWait == nil)
        #expect(configuration.timeouts.idle == Timeouts().idle)
        #expect(configuration.cache == nil && configuration.cookies == nil)
    }

    @Test(
        "A manager fetches files from a real server and reports that all are finished")
    func files() async throws {
        try await DownloadScene.run { scene in
            let names = (0..<8).map { "file-\($0).bin" }
            for (number, name) in names.enumerated() {
                try scene.serve(HonestServerTests.bytes(number * 3000, seed: UInt64(number)), as: name)
            }
            let directory = scene.path("queue")
            let manager = try await DownloadManager.background(directory: directory)
            for name in names { try await manager.add(scene.url("/\(name)"), to: scene.path(name)) }
            _ = try await manager.allFinished
            for (number, name) in names.enumerated() {
                #expect(try scene.read(name) == HonestServerTests.bytes(number * 3000, seed: UInt64(number)))
            }
            #expect(try scene.names() == (names + ["queue"]).sorted())
            await manager.close()
            let next = try await DownloadManager.background(directory: directory)
            _ = try await next.allFinished
            for id in next.ids {
                guard case .finished = next.download(id)?.state else {
                    Issue.record("download \(id) is not finished")
                    return
                }
            }
            await next.close()
        }
    }

    @Test("A download that is closed in the middle does not fetch its stored bytes again")
    func resumed() async throws {
        try await DownloadScene.run { scene in
            let bytes = HonestServerTests.bytes(12_000_000)
            try scene.serve(bytes, as: "big.bin")
            var options = DownloadOptions(segments: 1, checkpointInterval: .milliseconds(50))
            options.bandwidth = .bytesPerSecond(4_000_000)
            let directory = scene.path("queue")
            let first = try await DownloadManager.background(directory: directory)
            let id = try await first.add(scene.url("/big.bin"), to: scene.path("out"), options: options)
            let progress = try #require(first.download(id)).progress
            for await value in progress where value.completedByteCount > 0 { break }
            await first.pause(id)
            await first.close()
            let second = try await DownloadManager.background(directory: directory)
            let download = try #require(second.download(id))
            guard case .paused = download.state else {
                // If it finished before the pause, the file exists.
                #expect(try await download.value.byteCount == 12_000_000)
                return
            }
            var kept: UInt64 = 0
            for await value in download.progress {
                kept = value.completedByteCount
                break
            }
            #expect(kept > 0)
            try await second.setBandwidth(nil, of: id)
            try await download.resume()
            let result = try await download.value
            #expect(result.resumedByteCount > 0)
            #expect(result.receivedByteCount <= 12_000_000 - result.resumedByteCount)
            #expect(try scene.read("out") == bytes)
            await second.close()
        }
    }

    @Test("A cancelled download leaves neither bytes nor a record")
    func cancelled() async throws {
        try await DownloadScene.run { scene in
            try scene.serve(HonestServerTests.bytes(8_000_000), as: "big.bin")
            let manager = try await DownloadManager.background(directory: scene.path("queue"))
            let id = try await manager.add(
                scene.url("/big.bin"), to: .directory(scene.path("")),
                options: DownloadOptions(bandwidth: .bytesPerSecond(2_000_000)))
            let download = try #require(manager.download(id))
            for await value in download.progress where value.completedByteCount > 0 { break }
            await download.pause()
            await download.cancel()
            guard case .cancelled = download.state else {
                #expect(try scene.names() == ["big.bin", "queue"])
                return
            }
            #expect(try scene.names() == ["queue"])
            #expect(try LinuxFileSystem().names(inDirectory: scene.path("queue").string) == ["lock"])
            await manager.close()
        }
    }
}
