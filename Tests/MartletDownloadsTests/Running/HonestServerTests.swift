import Martlet
import MartletTesting
import Testing

@testable import MartletDownloads

@Suite("Downloads from a correct server")
struct HonestServerTests {
    static func bytes(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
        var generator = SeededGenerator(seed: seed)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count + 8)
        while bytes.count < count {
            let word: UInt64 = generator.next()
            for shift in stride(from: 0, to: 64, by: 8) {
                bytes.append(UInt8(truncatingIfNeeded: word >> UInt64(shift)))
            }
        }
        return Array(bytes.prefix(count))
    }

    @Test(
        "A file is complete, and no other files are left",
        arguments: [0, 1, 8 << 20, (8 << 20) + 1, 40_000_000])
    func whole(_ count: Int) async throws {
        try await DownloadScene.run { scene in
            let bytes = HonestServerTests.bytes(count)
            try scene.serve(bytes, as: "file.bin")
            let result = try await scene.session.download(scene.url("/file.bin"), to: scene.path("out"))
            #expect(result.byteCount == UInt64(count))
            #expect(try scene.read("out") == bytes)
            #expect(try scene.names() == ["out"])
        }
    }

    @Test("A missing directory ends the download after one request")
    func missingDirectory() async throws {
        try await DownloadScene.run { scene in
            try scene.serve(HonestServerTests.bytes(10), as: "file.bin")
            let target = DownloadTarget.directory(scene.path("missing"))
            let error = await #expect(throws: HTTPError.self) {
                try await scene.session.download(scene.url("/file.bin"), to: target)
            }
            #expect(error?.code == .fileFailed)
            #expect(error?.message.contains("missing") == true)
            #expect(scene.requestCount == 1)
        }
    }
}
