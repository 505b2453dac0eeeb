import Foundation
import Martlet
import MartletTesting
import SystemPackage
import Testing

/// Downloads from servers of other people's making.
@Suite("Downloads from real servers")
struct DownloadTests {
    /// Where the files of a server are, for a client.
    private struct Place: Sendable {
        var port: UInt16
        var site: String

        func url(_ path: String) -> String { "http://127.0.0.1:\(port)\(path)" }
    }

    /// The servers, and whether each gives parts of its files.
    enum Server: String, CaseIterable, CustomTestStringConvertible {
        case nginx, apache, lighttpd, python10, python11

        var testDescription: String { rawValue }
        var hasRanges: Bool { self != .python10 && self != .python11 }
    }

    private static func withServer(
        _ server: Server, _ body: (Place) async throws -> Void
    ) async throws {
        switch server {
        case .nginx:
            try await NginxServer.withServer {
                try await body(Place(port: $0.plainPort, site: $0.directory.appending("site")))
            }
        case .apache:
            try await ApacheServer.withServer {
                try await body(Place(port: $0.plainPort, site: $0.directory.appending("site")))
            }
        case .lighttpd:
            try await LighttpdServer.withServer {
                try await body(Place(port: $0.port, site: $0.directory.appending("site")))
            }
        case .python10:
            try await PythonServer.withServer(.http10) {
                try await body(Place(port: $0.port, site: $0.directory.appending("site")))
            }
        case .python11:
            try await PythonServer.withServer(.http11) {
                try await body(Place(port: $0.port, site: $0.directory.appending("site")))
            }
        }
    }

    /// Options for which nothing takes too long, and no failure is one too many.
    private static var patient: DownloadOptions {
        DownloadOptions(
            retry: DownloadRetry(
                attempts: 1_000, firstDelay: .milliseconds(1), longestDelay: .milliseconds(5)),
            stallTimeout: .seconds(300), checkpointInterval: .milliseconds(50))
    }

    private func contents(_ path: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
    }

    private func names(_ folder: TemporaryDirectory) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
    }

    @Test("Small files and empty ones come whole, each with one request", arguments: Server.allCases)
    func small(_ server: Server) async throws {
        try await DownloadTests.withServer(server) { place in
            let folder = try TemporaryDirectory()
            defer { folder.remove() }
            let session = HTTPSession.plain()
            for (name, bytes) in [
                ("hello.txt", Array(Site.hello.utf8)), ("bytes.bin", Site.bytes), ("empty.txt", []),
            ] {
                let result = try await session.download(
                    place.url("/\(name)"), to: .folder(FilePath(folder.path)))
                #expect(result.path == FilePath(folder.appending(name)))
                #expect(result.byteCount == UInt64(bytes.count))
                #expect(result.receivedByteCount == UInt64(bytes.count))
                #expect(try contents(folder.appending(name)) == bytes)
            }
            #expect(try names(folder) == ["bytes.bin", "empty.txt", "hello.txt"])
        }
    }

    @Test("A large file comes whole, in segments where there are ranges", arguments: Server.allCases)
    func large(_ server: Server) async throws {
        try await DownloadTests.withServer(server) { place in
            let folder = try TemporaryDirectory()
            defer { folder.remove() }
            let name = "large-\(UUID().uuidString).bin"
            let source = "\(place.site)/\(name)"
            try await LargeFile.write(20 << 20, to: source)
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSince1970: 1_700_000_000)], ofItemAtPath: source)
            defer { try? FileManager.default.removeItem(atPath: source) }
            let target = folder.appending("large.bin")
            let result = try await HTTPSession.plain().download(place.url("/\(name)"), to: FilePath(target))
            #expect(result.byteCount == 20 << 20)
            try await LargeFile.compare(source, target)
            #expect(try names(folder) == ["large.bin"])
        }
    }

    @Test("A download whose answers are cut again and again comes whole", arguments: Server.allCases)
    func cut(_ server: Server) async throws {
        try await DownloadTests.withServer(server) { place in
            let folder = try TemporaryDirectory()
            defer { folder.remove() }
            // Without ranges each cut is a new beginning, and some must come through.
            var options = FaultOptions.only(.truncated, percent: server.hasRanges ? 90 : 50)
            options.reach = 0..<400_000
            let proxy = try FaultProxy.start(beforeHost: "127.0.0.1", port: Int(place.port), options)
            let target = folder.appending("bytes.bin")
            let result = try await HTTPSession.plain().download(
                proxy.url("/bytes.bin"), to: FilePath(target), options: DownloadTests.patient)
            await proxy.stop()
            #expect(result.byteCount == 1 << 20, "\(proxy)")
            #expect(try contents(target) == Site.bytes, "\(proxy)")
            if server.hasRanges { #expect(result.receivedByteCount < 3 << 19, "\(proxy)") }
            #expect(try names(folder) == ["bytes.bin"])
        }
    }

    @Test("What one run left, the next one goes on with", arguments: [Server.nginx, .apache, .lighttpd])
    func nextRun(_ server: Server) async throws {
        try await DownloadTests.withServer(server) { place in
            let folder = try TemporaryDirectory()
            defer { folder.remove() }
            var faults = FaultOptions.only(.truncated)
            faults.reach = 300_000..<500_000
            let proxy = try FaultProxy.start(beforeHost: "127.0.0.1", port: Int(place.port), faults)
            let target = FilePath(folder.appending("bytes.bin"))
            var options = DownloadTests.patient
            options.retry.attempts = 0
            let error = await #expect(throws: HTTPError.self) {
                try await HTTPSession.plain().download(proxy.url("/bytes.bin"), to: target, options: options)
            }
            let kept = try #require(error?.keptByteCount, "\(proxy)")
            #expect(kept > 200_000)
            let download = try HTTPSession.plain().beginDownload(
                proxy.url("/bytes.bin"), to: .file(target), options: DownloadTests.patient)
            let result = try await download.value
            await proxy.stop()
            #expect(result.resumedByteCount == kept, "\(proxy)")
            #expect(result.receivedByteCount < (1 << 20) - kept + (64 << 10))
            #expect(try contents(folder.appending("bytes.bin")) == Site.bytes)
        }
    }

    @Test("nginx with gzip on gives downloads what they ask for: the file itself")
    func gzip() async throws {
        try await NginxServer.withServer { server in
            let folder = try TemporaryDirectory()
            defer { folder.remove() }
            let target = folder.appending("lines.txt")
            let result = try await HTTPSession.plain().download(
                server.url(server.plainPort, "/gzip/lines.txt"), to: FilePath(target))
            #expect(result.byteCount == UInt64(Site.lines.utf8.count))
            #expect(try contents(target) == Array(Site.lines.utf8))
        }
    }

    @Test("A file without a length, from nginx as a proxy, comes whole")
    func chunked() async throws {
        try await NginxServer.withServer { server in
            let folder = try TemporaryDirectory()
            defer { folder.remove() }
            let target = folder.appending("bytes.bin")
            let result = try await HTTPSession.plain().download(
                server.url(server.plainPort, "/chunked/bytes.bin"), to: FilePath(target))
            #expect(result.byteCount == 1 << 20)
            #expect(try contents(target) == Site.bytes)
        }
    }

    @Test("Paused at a slow place of nginx, a download goes on at a fast one of the same file")
    func elsewhere() async throws {
        try await NginxServer.withServer { server in
            let folder = try TemporaryDirectory()
            defer { folder.remove() }
            let target = folder.appending("bytes.bin")
            let download = try HTTPSession.plain().beginDownload(
                server.url(server.plainPort, "/slow/bytes.bin"), to: .file(FilePath(target)),
                options: DownloadTests.patient)
            for await progress in download.progress where progress.completedByteCount > 0 { break }
            await download.pause()
            try await download.resume(from: server.url(server.plainPort, "/bytes.bin"))
            let result = try await download.value
            #expect(result.resumedByteCount > 0)
            #expect(result.resumedByteCount + result.receivedByteCount >= 1 << 20)
            #expect(try contents(target) == Site.bytes)
            #expect(try names(folder) == ["bytes.bin"])
        }
    }

    @Test("Over TLS a large file of nginx comes whole")
    func secure() async throws {
        try await NginxServer.withServer { server in
            let folder = try TemporaryDirectory()
            defer { folder.remove() }
            let target = folder.appending("bytes.bin")
            let result = try await HTTPSession.trusting(server.certificates).download(
                server.url(server.tlsPort, "/bytes.bin", scheme: "https"), to: FilePath(target))
            #expect(result.byteCount == 1 << 20)
            #expect(try contents(target) == Site.bytes)
        }
    }

    @Test("410 of nginx is an error, and leaves nothing")
    func gone() async throws {
        try await NginxServer.withServer { server in
            let folder = try TemporaryDirectory()
            defer { folder.remove() }
            let error = await #expect(throws: HTTPError.self) {
                try await HTTPSession.plain().download(
                    server.url(server.plainPort, "/gone"), to: FilePath(folder.appending("gone")))
            }
            #expect(error?.code == .unacceptableStatus)
            #expect(try names(folder).isEmpty)
        }
    }
}
