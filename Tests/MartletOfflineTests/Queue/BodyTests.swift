import Martlet
import MartletTesting
import SystemPackage
import Testing

@Suite("Offline queue: bodies")
struct BodyTests {
    /// Runs a test with a server that records the bodies of requests.
    private static func run(_ body: (OfflineScene, ServerLog) async throws -> Void) async throws {
        let serverLog = ServerLog()
        try await OfflineScene.run { request in
            try await serverLog.note(request)
            return .text("")
        } _: { scene in
            try await body(scene, serverLog)
        }
    }

    private static let large = Array(repeating: UInt8(ascii: "x"), count: 300_000)

    @Test("Bytes, forms, streams and files arrive unchanged, also from the next process")
    func allKinds() async throws {
        try await Self.run { scene, serverLog in
            let other = try OfflineDirectory()
            try other.write(Self.large, to: "file")
            let stream = HTTPBody.stream {
                AsyncStream<[UInt8]> { continuation in
                    for _ in 0..<3 { continuation.yield(Array(Self.large.prefix(50_000))) }
                    continuation.finish()
                }
            }
            let once = HTTPBody.once(
                AsyncStream<[UInt8]> { continuation in
                    continuation.yield(Array("abc".utf8))
                    continuation.finish()
                })
            let file = FilePath("\(other.path)/file")
            let multipart = HTTPBody.multipart { form in
                form.field("title", "Sea")
                form.file("photo", at: file)
            }
            let bodies: [(String, HTTPBody)] = [
                ("none", .none), ("empty", .bytes([])), ("small", .text("small")),
                ("large", .bytes(Self.large)),
                ("stream", stream), ("once", once), ("file", .file(file)), ("multipart", multipart),
            ]
            let keeping = try await scene.queue { $0.sendsRequests = false }
            for (name, body) in bodies {
                try await keeping.submit(try scene.request(.post, "/\(name)"), body: body)
            }
            // A file of the caller is not copied.
            try await keeping.submit(
                try scene.request(.post, "/copy"), body: .file(file),
                as: OfflineSubmission(filePolicy: .copy))
            await keeping.close()
            #expect(try scene.directory.names().filter { $0.hasSuffix(".body") }.count == 5)
            let queue = try await scene.queue()
            try await queue.drained
            let came = Dictionary(
                serverLog.entries.map { ($0.path, $0) }, uniquingKeysWith: { first, _ in first })
            #expect(came["/none"]?.body == "")
            #expect(came["/empty"]?.body == "")
            #expect(came["/small"]?.body == "small")
            #expect(came["/large"]?.body.utf8.elementsEqual(Self.large) == true)
            #expect(came["/stream"]?.body.utf8.count == 150_000)
            #expect(came["/once"]?.body == "abc")
            #expect(came["/file"]?.body.utf8.elementsEqual(Self.large) == true)
            #expect(came["/copy"]?.body.utf8.elementsEqual(Self.large) == true)
            let form = try #require(came["/multipart"])
            let boundary = try #require(form.fields["Content-Type"]?.split(separator: "boundary=").last)
            #expect(form.body.hasPrefix("--\(boundary.filter { $0 != "\"" })"))
            #expect(form.body.utf8.count > 300_000)
            #expect(try scene.directory.names() == [])
            #expect(try other.names() == ["file"], "a caller's file stays")
            await queue.close()
        }
    }

    @Test("A file that was changed, cut or removed fails its request alone, as a dead letter")
    func changedFile() async throws {
        try await Self.run { scene, serverLog in
            let other = try OfflineDirectory()
            let keeping = try await scene.queue { $0.sendsRequests = false }
            for name in ["same", "changed", "longer", "gone", "directory"] {
                try other.write(Array("content".utf8), to: name)
                try await keeping.submit(
                    try scene.request(.post, "/\(name)"), body: .file(FilePath("\(other.path)/\(name)")),
                    tag: name)
            }
            await keeping.close()
            try other.write(Array("CONTENT".utf8), to: "changed")
            try other.write(Array("content.".utf8), to: "longer")
            try other.remove("gone")
            try other.remove("directory")
            try other.makeDirectory("directory")
            let queue = try await scene.queue()
            try await queue.drained
            #expect(serverLog.entries.map(\.path) == ["/same"])
            let entries = await queue.entries
            #expect(entries.compactMap(\.ticket.tag) == ["changed", "longer", "gone", "directory"])
            for entry in entries {
                guard case .dead(let letter) = entry.state else {
                    Issue.record("\(entry)")
                    continue
                }
                #expect(letter.reason == .bodyChanged)
                #expect(letter.message.contains(other.path))
                #expect(entry.attempts == 0)
            }
            // Once the file is restored, the request can be sent.
            try other.write(Array("content".utf8), to: "changed")
            try await queue.retry(try #require(entries.first).ticket.id)
            try await queue.drained
            #expect(serverLog.entries.map(\.path) == ["/same", "/changed"])
            await queue.close()
        }
    }

    @Test("A damaged body in the queue's own file is not sent")
    func damagedBody() async throws {
        try await Self.run { scene, serverLog in
            let keeping = try await scene.queue { $0.sendsRequests = false }
            for _ in 0..<2 { try await keeping.submit(try scene.request(), body: .bytes(Self.large)) }
            await keeping.close()
            var bytes = try scene.directory.contents(of: "1.body")
            bytes[200_000] ^= 1
            try scene.directory.write(bytes, to: "1.body")
            try scene.directory.remove("2.body")
            let queue = try await scene.queue()
            try await queue.drained
            #expect(serverLog.entries.isEmpty)
            for entry in await queue.entries {
                guard case .dead(let letter) = entry.state else {
                    Issue.record("\(entry)")
                    continue
                }
                #expect(letter.reason == .bodyDamaged)
            }
            await queue.close()
        }
    }

    @Test("A body that fails or has an unexpected length is rejected, and leaves no file")
    func failingSources() async throws {
        struct Broken: Error {}
        try await Self.run { scene, serverLog in
            let queue = try await scene.queue()
            let broken = HTTPBody.stream {
                AsyncThrowingStream<[UInt8], any Error> { continuation in
                    continuation.yield(Self.large)
                    continuation.finish(throwing: Broken())
                }
            }
            await #expect(throws: Broken.self) { try await queue.submit(try scene.request(), body: broken) }
            for length in [UInt64(1), 1_000_000] {
                let wrong = HTTPBody.stream(length: length) {
                    AsyncStream<[UInt8]> { continuation in
                        continuation.yield(Self.large)
                        continuation.finish()
                    }
                }
                await #expect(throws: HTTPError.self) {
                    try await queue.submit(try scene.request(), body: wrong)
                }
            }
            await #expect(throws: HTTPError.self) {
                try await queue.submit(try scene.request(), body: .file("/nowhere/at/all"))
            }
            #expect(try scene.directory.names() == [])
            #expect(await queue.pendingCount == 0)
            #expect(serverLog.entries.isEmpty)
            await queue.close()
        }
    }
}
