import Foundation
import MartletCore
import MartletTesting
import MartletTestSupport
import Testing

@testable import MartletUploads

/// Processes that are killed while they upload.
@Suite("Killed uploads")
struct KilledUploadTests {
    /// Starts a process, kills it when a condition holds or it has ended, and returns its output.
    private func run(_ words: [String], until condition: () -> Bool) async throws -> String {
        let program = try PipedProcess.program("MartletUploadsChild")
        let process = try await PipedProcess.run { try PipedProcess.start([program] + words) }
        let output = OneShot<String>()
        Thread.detachNewThread {
            let bytes = process.readToEnd()
            _ = process.end()
            output.fulfill(String(decoding: bytes, as: UTF8.self))
        }
        let hasEnded = Shared(false)
        let waiting = Task {
            if case .value(let text) = await output.wait(until: .distantFuture, on: .sharedOrStalled) {
                hasEnded.change { $0 = true }
                return text
            }
            return ""
        }
        _ = await eventually { hasEnded.value || condition() }
        if !hasEnded.value { kill(process.identifier, SIGKILL) }
        return await waiting.value
    }

    @Test(
        "A file arrives once, and no acknowledged byte is sent twice, after 50 kills at random points",
        arguments: [UploadProtocol.ietf, .tus])
    func kills(given: UploadProtocol) async throws {
        let seed = UInt64.random(in: 0 ... .max)
        var generator = SeededGenerator(seed: seed)
        try await UploadScene.with(3_000_000) { scene in
            let words = [scene.directory, scene.file, scene.url, "\(given)", "POST", "500000"]
            for round in 0..<50 {
                let held = scene.store.heldCount
                // The first kills are before the creation of the upload is acknowledged.
                let isCreation = round < 3
                let count = isCreation ? 0 : Int.random(in: 1...60_000, using: &generator)
                scene.store.inject(.hold(afterBytes: count), into: isCreation ? .post : .patch)
                let output = try await run(words) { scene.store.heldCount > held }
                #expect(output.isEmpty, "round \(round), seed \(seed)")
            }
            let output = try await run(words) { false }
            #expect(output == "finished \(given == .tus ? 204 : 201)\n", "seed \(seed)")
            #expect(scene.store.completed.map(\.bytes) == [scene.bytes], "seed \(seed)")
            #expect(scene.store.receivedByteCount == scene.bytes.count, "seed \(seed)")
        }
    }

    @Test("A process that is killed at any request leaves an upload that the next one completes")
    func anyRequest() async throws {
        let seed = UInt64.random(in: 0 ... .max)
        var generator = SeededGenerator(seed: seed)
        for given in [UploadProtocol.automatic, .tus, .plain] {
            try await UploadScene.with(2_000_000) { scene in
                let words = [scene.directory, scene.file, scene.url, "\(given)", "PUT", "100000"]
                var output = ""
                for _ in 0..<15 where output.isEmpty {
                    let count = scene.store.requests.count + Int.random(in: 1...4, using: &generator)
                    output = try await run(words) { scene.store.requests.count >= count }
                }
                if output.isEmpty { output = try await run(words) { false } }
                #expect(output.hasPrefix("finished 20"), "\(given), seed \(seed)")
                #expect(scene.store.completed.last?.bytes == scene.bytes, "\(given), seed \(seed)")
                if given != .plain { #expect(scene.store.completed.count == 1, "\(given), seed \(seed)") }
            }
        }
    }
}
