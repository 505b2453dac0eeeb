import Foundation
import Martlet
import MartletTesting
import SystemPackage
import Testing

/// Downloads from third-party servers.
@Suite("Downloads from real servers")
struct DownloadTests {
    /// Options with long timeouts and many retries.
    private static var patient: DownloadOptions {
        DownloadOptions(
            retry: DownloadRetry(
                maximumRetries: 1_000, initialDelay: .milliseconds(1), maximumDelay: .milliseconds(5)),
            stallTimeout: .seconds(300), checkpointInterval: .milliseconds(50))
    }

    /// The same options with one connection at a time.
    private static var orderly: DownloadOptions {
        var options = patient
        options.segments = 1
        return options
    }

    private func contents(_ path: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
    }

    private func names(_ directory: TemporaryDirectory) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted()
    }

    /// Makes a large file with an old modification time: servers send weak validators for a new file.
    private func oldFile(_ byteCount: Int, _ path: String) async throws -> String {
        try await LargeFile.write(byteCount, to: path)
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSince1970: 1_700_000_000)], ofItemAtPath: path)
        return path
    }

    @Test("Small files and empty ones arrive complete", arguments: DownloadServer.allCases)
    func small(_ server: DownloadServer) async throws {
        try await server.run { place in
            let directory = try TemporaryDirectory()
            defer { directory.remove() }
            let session = HTTPSession.plain()
            for (name, bytes) in [
                ("hello.txt", Array(Site.hello.utf8)), ("bytes.bin", Site.bytes), ("empty.txt", []),
            ] {
                let result = try await session.download(
                    place.url("/\(name)"), to: .directory(FilePath(directory.path)),
                    options: DownloadTests.orderly)
                #expect(result.path == FilePath(directory.appending(name)))
                #expect(result.byteCount == UInt64(bytes.count))
                #expect(result.receivedByteCount == UInt64(bytes.count))
                #expect(try contents(directory.appending(name)) == bytes)
            }
            #expect(try names(directory) == ["bytes.bin", "empty.txt", "hello.txt"])
        }
    }

    @Test("A large file is complete, in segments if the server supports ranges", arguments: DownloadServer.allCases)
    func large(_ server: DownloadServer) async throws {
        try await server.run { place in
            let directory = try TemporaryDirectory()
            defer { directory.remove() }
            let name = "large-\(UUID().uuidString).bin"
            let source = try await oldFile(20 << 20, "\(place.site)/\(name)")
            defer { try? FileManager.default.removeItem(atPath: source) }
            let target = directory.appending("large.bin")
            let result = try await HTTPSession.plain().download(
                place.url("/\(name)"), to: FilePath(target), options: DownloadTests.patient)
            #expect(result.byteCount == 20 << 20)
            try await LargeFile.compare(source, target)
            #expect(try names(directory) == ["large.bin"])
        }
    }

    @Test(
        "A download whose responses are cut repeatedly fetches each byte once",
        arguments: DownloadServer.withRanges)
    func cut(_ server: DownloadServer) async throws {
        try await server.run { place in
            let directory = try TemporaryDirectory()
            defer { directory.remove() }
            var faults = FaultOptions.only(.truncated)
            faults.offsets = 0..<400_000
            faults.faultyConnectionCount = 30
            let proxy = try FaultProxy.start(beforeHost: "127.0.0.1", port: Int(place.port), faults)
            let target = directory.appending("bytes.bin")
            let result = try await HTTPSession.plain().download(
                proxy.url("/bytes.bin"), to: FilePath(target), options: DownloadTests.orderly)
            await proxy.stop()
            #expect(result.byteCount == 1 << 20, "\(proxy)")
            #expect(result.receivedByteCount == 1 << 20, "\(proxy)")
            #expect(try contents(target) == Site.bytes, "\(proxy)")
            // Wherever it is cut, two responses do not contain all bytes.
            #expect(proxy.counts.faults[.truncated, default: 0] >= 2, "\(proxy)")
            #expect(try names(directory) == ["bytes.bin"])
        }
    }

    @Test(
        "Resets of several connections at a time do not harm a download",
        arguments: DownloadServer.withRanges
    )
    func reset(_ server: DownloadServer) async throws {
        try await server.run { place in
            let directory = try TemporaryDirectory()
            defer { directory.remove() }
            let name = "reset-\(UUID().uuidString).bin"
            let source = try await oldFile(9 << 20, "\(place.site)/\(name)")
            defer { try? FileManager.default.removeItem(atPath: source) }
            var faults = FaultOptions.only(.reset, percent: 60)
            faults.offsets = 0..<4_000_000
            faults.faultyConnectionCount = 60
            let proxy = try FaultProxy.start(beforeHost: "127.0.0.1", port: Int(place.port), faults)
            let target = directory.appending("reset.bin")
            let result = try await HTTPSession.plain().download(
                proxy.url("/\(name)"), to: FilePath(target), options: DownloadTests.patient)
            await proxy.stop()
            #expect(result.byteCount == 9 << 20, "\(proxy)")
            try await LargeFile.compare(source, target)
            #expect(try names(directory) == ["reset.bin"])
        }
    }

    @Test(
        "Without ranges a cut download restarts for each retry, and fails with the last",
        arguments: [DownloadServer.python10, .python11], [1, 4])
    func cutWithoutRanges(_ server: DownloadServer, _ segments: Int) async throws {
        try await server.run { place in
            let directory = try TemporaryDirectory()
            defer { directory.remove() }
            var faults = FaultOptions.only(.truncated)
            // The cut is after the head, so that each cut response has some bytes of the body.
            faults.offsets = 100_000..<900_000
            faults.isExact = true
            faults.faultyConnectionCount = 2
            let proxy = try FaultProxy.start(beforeHost: "127.0.0.1", port: Int(place.port), faults)
            let target = directory.appending("bytes.bin")
            var options = DownloadTests.patient
            options.segments = segments
            let result = try await HTTPSession.plain().download(
                proxy.url("/bytes.bin"), to: FilePath(target), options: options)
            await proxy.stop()
            #expect(result.byteCount == 1 << 20, "\(proxy)")
            #expect(try contents(target) == Site.bytes, "\(proxy)")
            #expect(try names(directory) == ["bytes.bin"])
        }
        try await server.run { place in
            let directory = try TemporaryDirectory()
            defer { directory.remove() }
            var faults = FaultOptions.only(.truncated)
            faults.offsets = 100_000..<900_000
            faults.isExact = true
            let proxy = try FaultProxy.start(beforeHost: "127.0.0.1", port: Int(place.port), faults)
            var options = DownloadTests.patient
            options.segments = segments
            options.retry.maximumRetries = 5
            let error = await #expect(throws: HTTPError.self) {
                try await HTTPSession.plain().download(
                    proxy.url("/bytes.bin"), to: FilePath(directory.appending("bytes.bin")), options: options)
            }
            await proxy.stop()
            #expect(error?.code == .truncated, "\(String(describing: error))")
            #expect(try !names(directory).contains("bytes.bin"))
        }
    }

    @Test("The next run resumes the bytes of the previous one", arguments: DownloadServer.withRanges)
    func nextRun(_ server: DownloadServer) async throws {
        try await server.run { place in
            let directory = try TemporaryDirectory()
            defer { directory.remove() }
            var faults = FaultOptions.only(.truncated)
            faults.offsets = 300_000..<500_000
            faults.isExact = true
            faults.faultyConnectionCount = 1
            let proxy = try FaultProxy.start(beforeHost: "127.0.0.1", port: Int(place.port), faults)
            let target = FilePath(directory.appending("bytes.bin"))
            var options = DownloadTests.orderly
            options.retry.maximumRetries = 0
            let error = await #expect(throws: HTTPError.self) {
                try await HTTPSession.plain().download(proxy.url("/bytes.bin"), to: target, options: options)
            }
            let kept = try #require(error?.resumableByteCount, "\(proxy)")
            // All bytes after the head, which is far smaller than 10 kB, were stored.
            #expect((290_000..<500_000).contains(kept), "\(proxy)")
            #expect(try !names(directory).contains("bytes.bin"))
            let download = try HTTPSession.plain().startDownload(
                proxy.url("/bytes.bin"), to: .file(target), options: DownloadTests.orderly)
            let result = try await download.value
            await proxy.stop()
            #expect(result.resumedByteCount == kept, "\(proxy)")
            #expect(result.receivedByteCount == (1 << 20) - kept, "\(proxy)")
            #expect(try contents(directory.appending("bytes.bin")) == Site.bytes)
            #expect(try names(directory) == ["bytes.bin"])
        }
    }

    // lighttpd serves the metadata of a replaced file for up to a second.
    @Test(
        "A file that was replaced between two runs arrives complete in its new version",
        arguments: [DownloadServer.nginx, .apache, .flask])
    func replaced(_ server: DownloadServer) async throws {
        try await server.run { place in
            let directory = try TemporaryDirectory()
            defer { directory.remove() }
            let name = "replaced-\(UUID().uuidString).bin"
            let source = try await oldFile(1 << 20, "\(place.site)/\(name)")
            defer { try? FileManager.default.removeItem(atPath: source) }
            var faults = FaultOptions.only(.truncated)
            faults.offsets = 300_000..<500_000
            faults.isExact = true
            faults.faultyConnectionCount = 1
            let proxy = try FaultProxy.start(beforeHost: "127.0.0.1", port: Int(place.port), faults)
            let target = directory.appending("new.bin")
            var options = DownloadTests.orderly
            options.retry.maximumRetries = 0
            let error = await #expect(throws: HTTPError.self) {
                try await HTTPSession.plain().download(
                    proxy.url("/\(name)"), to: FilePath(target), options: options)
            }
            #expect(error?.resumableByteCount ?? 0 > 0, "\(proxy)")
            // It has the same length and is older: only the validators distinguish the two.
            try InputFile.write(Data(TestPattern.bytes(from: 5, count: 1 << 20)), to: source)
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSince1970: 1_600_000_000)], ofItemAtPath: source)
            let download = try HTTPSession.plain().startDownload(
                proxy.url("/\(name)"), to: .file(FilePath(target)), options: DownloadTests.orderly)
            let result = try await download.value
            await proxy.stop()
            #expect(result.resumedByteCount == 0, "\(proxy)")
            #expect(result.receivedByteCount == 1 << 20, "\(proxy)")
            #expect(try contents(target) == TestPattern.bytes(from: 5, count: 1 << 20))
            #expect(try names(directory) == ["new.bin"])
        }
    }

    @Test("A file arrives complete though httpbin rejects ranges past its end")
    func httpbin() async throws {
        try await HttpbinServer.withServer { server in
            let directory = try TemporaryDirectory()
            defer { directory.remove() }
            let target = directory.appending("range")
            let result = try await HTTPSession.plain().download(
                server.url("/range/100000"), to: FilePath(target), options: DownloadTests.patient)
            #expect(result.byteCount == 100_000)
            #expect(try contents(target) == (0..<100_000).map { 97 + UInt8($0 % 26) })
        }
    }

    @Test("nginx with gzip enabled serves downloads the uncompressed file")
    func gzip() async throws {
        try await NginxServer.withServer { server in
            let directory = try TemporaryDirectory()
            defer { directory.remove() }
            let target = directory.appending("lines.txt")
            let result = try await HTTPSession.plain().download(
                server.url(server.plainPort, "/gzip/lines.txt"), to: FilePath(target),
                options: DownloadTests.patient)
            #expect(result.byteCount == UInt64(Site.lines.utf8.count))
            #expect(try contents(target) == Array(Site.lines.utf8))
        }
    }

    @Test("A file without a length from an nginx proxy arrives complete")
    func chunked() async throws {
        try await NginxServer.withServer { server in
            let directory = try TemporaryDirectory()
            defer { directory.remove() }
            let target = directory.appending("bytes.bin")
            let result = try await HTTPSession.plain().download(
                server.url(server.plainPort, "/chunked/bytes.bin"), to: FilePath(target),
                options: DownloadTests.patient)
            #expect(result.byteCount == 1 << 20)
            #expect(try contents(target) == Site.bytes)
        }
    }

    @Test("A download paused at a slow nginx URL resumes at a fast one of the same file")
    func elsewhere() async throws {
        try await NginxServer.withServer { server in
            let directory = try TemporaryDirectory()
            defer { directory.remove() }
            let target = directory.appending("bytes.bin")
            let download = try HTTPSession.plain().startDownload(
                server.url(server.plainPort, "/slow/bytes.bin"), to: .file(FilePath(target)),
                options: DownloadTests.orderly)
            for await progress in download.progress where progress.completedByteCount > 0 { break }
            await download.pause()
            try await download.resume(from: server.url(server.plainPort, "/bytes.bin"))
            let result = try await download.value
            #expect(result.resumedByteCount > 0)
            #expect(result.resumedByteCount + result.receivedByteCount >= 1 << 20)
            #expect(try contents(target) == Site.bytes)
            #expect(try names(directory) == ["bytes.bin"])
        }
    }

    @Test("A large file of nginx arrives complete over TLS")
    func secure() async throws {
        try await NginxServer.withServer { server in
            let directory = try TemporaryDirectory()
            defer { directory.remove() }
            let target = directory.appending("bytes.bin")
            let result = try await HTTPSession.trusting(server.certificates).download(
                server.url(server.tlsPort, "/bytes.bin", scheme: "https"), to: FilePath(target),
                options: DownloadTests.patient)
            #expect(result.byteCount == 1 << 20)
            #expect(try contents(target) == Site.bytes)
        }
    }

    @Test("410 of nginx is an error, and leaves no file")
    func gone() async throws {
        try await NginxServer.withServer { server in
            let directory = try TemporaryDirectory()
            defer { directory.remove() }
            let error = await #expect(throws: HTTPError.self) {
                try await HTTPSession.plain().download(
                    server.url(server.plainPort, "/gone"), to: FilePath(directory.appending("gone")))
            }
            #expect(error?.code == .unacceptableStatus)
            #expect(try names(directory).isEmpty)
        }
    }
}
