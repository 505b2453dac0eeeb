import Foundation
import Martlet
import Synchronization
import Testing

@Suite("Uploads to nginx")
struct NginxUploadTests {
    private let byteCount = 20_000_000

    @Test("20 MB from a file arrive and are returned unchanged")
    func file() async throws {
        try await NginxServer.withServer { server in
            let session = HTTPSession.plain()
            let source = server.directory.appending("file-source.bin")
            try await LargeFile.write(byteCount, to: source)
            let url = server.url(server.plainPort, "/upload/file.bin")
            let last = Mutex(TransferProgress())
            let stored = try await session.upload(
                .file(FilePath(source)), to: HTTPRequest(method: .put, url: url)
            ) { progress in
                last.withLock { $0 = progress }
            }
            #expect(stored.response.status == .created)
            let seen = last.withLock(\.self)
            #expect(seen.isFinished)
            #expect(seen.completedByteCount == UInt64(byteCount))
            #expect(seen.totalByteCount == UInt64(byteCount))
            try await LargeFile.compare(source, server.directory.appending("uploads/file.bin"))
            let copy = server.directory.appending("file-copy.bin")
            try await session.save(
                HTTPRequest(method: .get, url: url), to: FilePath(copy), overwrites: false)
            try await LargeFile.compare(source, copy)
        }
    }

    @Test("20 MB from a stream of unknown length arrive in chunks and are returned unchanged")
    func stream() async throws {
        try await NginxServer.withServer { server in
            let session = HTTPSession.plain()
            let source = server.directory.appending("stream-source.bin")
            try await LargeFile.write(byteCount, to: source)
            let url = server.url(server.plainPort, "/upload/stream.bin")
            let pieces = LargeFile.Pieces(byteCount: byteCount)
            let stored = try await session.put(url, body: .stream { pieces })
            #expect(stored.response.status == .created)
            try await LargeFile.compare(source, server.directory.appending("uploads/stream.bin"))
            let copy = server.directory.appending("stream-copy.bin")
            try await session.save(
                HTTPRequest(method: .get, url: url), to: FilePath(copy), overwrites: false)
            try await LargeFile.compare(source, copy)
            #expect(session.poolStatus.opened == 1)
        }
    }

    @Test("A stream of known length is sent with Content-Length")
    func sizedStream() async throws {
        try await NginxServer.withServer { server in
            let pieces = LargeFile.Pieces(byteCount: 1_000_000)
            let stored = try await HTTPSession.plain().put(
                server.url(server.plainPort, "/upload/sized.bin"),
                body: .stream(length: 1_000_000) { pieces })
            #expect(stored.response.status == .created)
            let path = server.directory.appending("uploads/sized.bin")
            #expect(OutputFile.bytes(of: path).count == 1_000_000)
        }
    }

    @Test(
        "413 is delivered during the upload, and the upload stops",
        arguments: [nil, UInt64(200_000_000)])
    func tooLarge(_ length: UInt64?) async throws {
        try await NginxServer.withServer { server in
            let session = HTTPSession.plain()
            let pieces = LargeFile.Pieces(byteCount: 200_000_000)
            let rejected = try await session.put(
                server.url(server.plainPort, "/small/big.bin"), body: .stream(length: length) { pieces })
            #expect(rejected.response.status == .contentTooLarge)
            #expect(rejected.text.contains("413"))
            #expect(rejected.metrics.sentByteCount < 200_000_000)
            #expect(session.poolStatus.leased == 0)
            // The rest of the upload must not be read as a request: the next one has a new connection.
            let next = try await session.get(server.url(server.plainPort, "/connection"))
            #expect(next.text == "1")
        }
    }

    @Test("With Expect: 100-continue the body is sent after the server's 100")
    func expectContinue() async throws {
        try await NginxServer.withServer { server in
            let stored = try await HTTPSession.plain { $0.continueTimeout = .seconds(300) }.put(
                server.url(server.plainPort, "/upload/expected.txt"), body: .text("after the word"),
                headers: [.expect: "100-continue"])
            #expect(stored.response.status == .created)
            #expect(stored.interimResponses.map(\.status.code) == [100])
            let path = server.directory.appending("uploads/expected.txt")
            #expect(OutputFile.contents(of: path) == "after the word")
        }
    }

    @Test("With Expect: 100-continue a rejected body is never sent")
    func expectRefused() async throws {
        try await NginxServer.withServer { server in
            let body = [UInt8](repeating: 0x61, count: 100_000)
            let rejected = try await HTTPSession.plain { $0.continueTimeout = .seconds(300) }.put(
                server.url(server.plainPort, "/small/expected.txt"), body: .bytes(body),
                headers: [.expect: "100-continue"])
            #expect(rejected.response.status == .contentTooLarge)
            #expect(rejected.metrics.sentByteCount < 1_000)
        }
    }

    @Test("A stored file can be fetched and deleted over the same connection")
    func delete() async throws {
        try await NginxServer.withServer { server in
            let session = HTTPSession.plain()
            let url = server.url(server.plainPort, "/upload/fetched/a.txt")
            let stored = try await session.put(url, body: .text("abc"))
            #expect(stored.response.status == .created)
            let fetched = try await session.get(url)
            #expect(fetched.text == "abc")
            let deleted = try await session.delete(url)
            #expect(deleted.response.status == .noContent)
            let missing = try await session.get(url)
            #expect(missing.response.status == .notFound)
            #expect(session.poolStatus.opened == 1)
        }
    }

    @Test("A method that a file does not support gets a response with a body")
    func methodNotAllowed() async throws {
        try await NginxServer.withServer { server in
            let rejected = try await HTTPSession.plain().post(
                server.url(server.plainPort, "/hello.txt"), body: .form([]))
            #expect(rejected.response.status == .methodNotAllowed)
            #expect(rejected.text.contains("405"))
        }
    }
}
