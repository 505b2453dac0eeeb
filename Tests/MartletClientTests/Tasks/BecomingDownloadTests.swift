import Martlet
import MartletTesting
import MartletTestSupport
import Testing

@Suite("Calls that become downloads")
struct BecomingDownloadTests {
    private static let size = 24

    /// Returns a script with a body of 24 bytes that stops after `count` of them until the signal `go`.
    private static func script(stoppingBehind count: Int, isChunked: Bool) -> ServerScript {
        let bytes = TestPattern.bytes(from: 0, count: size)
        let framing = isChunked ? "Transfer-Encoding: chunked" : "Content-Length: \(size)"
        func framed(_ part: ArraySlice<UInt8>) -> [UInt8] {
            guard isChunked, !part.isEmpty else { return Array(part) }
            return Array("\(String(part.count, radix: 16))\r\n".utf8) + part + Array("\r\n".utf8)
        }
        return ServerScript(
            .expectRequestHead, .send("HTTP/1.1 200 OK\r\n\(framing)\r\n\r\n"),
            .send(framed(bytes[..<count])), .await("go"), .send(framed(bytes[count...])),
            .send(isChunked ? "0\r\n\r\n" : ""), .awaitClose)
    }

    @Test(
        "A stream becomes a file at every offset, with or without the bytes already read, and no byte is lost",
        arguments: [false, true])
    func streamed(isChunked: Bool) async throws {
        let directory = try TemporaryDirectory()
        let session = HTTPSession.own()
        let bytes = TestPattern.bytes(from: 0, count: BecomingDownloadTests.size)
        for count in 0...BecomingDownloadTests.size {
            for extent in [ResponseBody.Extent.whole, .rest] {
                let name = "\(count)-\(extent.rawValue)"
                let script = BecomingDownloadTests.script(stoppingBehind: count, isChunked: isChunked)
                try await TestOrigin.withOrigin(scripts: script) { origin async throws in
                    try await session.stream(try HTTPRequest(.get, origin)) { _, body in
                        let body = body.buffering()
                        var taken: [UInt8] = []
                        var iterator = body.makeAsyncIterator()
                        while taken.count < count {
                            taken += try #require(try await iterator.next())
                        }
                        #expect(taken == Array(bytes[..<count]))
                        origin.signals.raise("go")
                        try await body.write(to: directory.path(name), extent)
                    }
                }
                let expected = extent == .whole ? bytes : Array(bytes[count...])
                #expect(try directory.bytes(of: name) == expected)
            }
        }
    }

    @Test("A running task becomes a download at every offset", arguments: [false, true])
    func task(isChunked: Bool) async throws {
        let directory = try TemporaryDirectory()
        let session = HTTPSession.own()
        let bytes = TestPattern.bytes(from: 0, count: BecomingDownloadTests.size)
        for count in 0...BecomingDownloadTests.size {
            let script = BecomingDownloadTests.script(stoppingBehind: count, isChunked: isChunked)
            try await TestOrigin.withOrigin(scripts: script) { origin async throws in
                let task = await session.task(for: try HTTPRequest(.get, origin))
                _ = try await task.response
                let progress = task.downloadProgress
                #expect(await eventually { progress.current.completedByteCount == UInt64(count) })
                async let written: Void = task.becomeDownload(to: directory.path("\(count)"))
                // A complete body needs no signal, and may end before the file is requested.
                if count < BecomingDownloadTests.size {
                    #expect(await eventually { task.kind == .download })
                    #expect(await session.tasks(of: .download).map(\.id) == [task.id])
                }
                origin.signals.raise("go")
                try await written
                let exchange = try await task.value
                if count < BecomingDownloadTests.size { #expect(exchange.body.isEmpty) }
                #expect(try directory.bytes(of: "\(count)") == bytes)
            }
        }
    }

    @Test("A coded body becomes a file of its decoded bytes", arguments: [false, true])
    func coded(isTask: Bool) async throws {
        let directory = try TemporaryDirectory()
        let bytes = TestPattern.bytes(from: 0, count: 1_000_000)
        let coded = Deflated.bytes(bytes, as: .gzip)
        try await TestOrigin.withOrigin { _ in
            .encoded(coded, coding: "gzip")
        } run: { origin async throws in
            let session = HTTPSession.own()
            if isTask {
                let task = await session.task(for: try HTTPRequest(.get, origin))
                try await task.becomeDownload(to: directory.path("file"))
            } else {
                try await session.stream(try HTTPRequest(.get, origin)) { _, body in
                    let body = body.buffering()
                    var iterator = body.makeAsyncIterator()
                    _ = try await iterator.next()
                    try await body.write(to: directory.path("file"), .whole)
                }
            }
            #expect(try directory.bytes(of: "file") == bytes)
        }
    }

    @Test("A call that became a download is not limited by the memory limit")
    func largerThanMemory() async throws {
        let directory = try TemporaryDirectory()
        let signals = SignalBox()
        try await TestOrigin.withOrigin { _ in
            OriginResponse(
                200,
                body: .stream { writer in
                    for index in 0..<40 {
                        try await writer.write(TestPattern.bytes(from: UInt64(index) * 50_000, count: 50_000))
                        if index == 0 { try await signals.wait(for: "asked") }
                    }
                })
        } run: { origin async throws in
            signals.use(origin)
            let session = HTTPSession.own { $0.bufferedBodyLimit = .kibibytes(64) }
            let task = await session.task(for: try HTTPRequest(.get, origin))
            async let written: Void = task.becomeDownload(to: directory.path("file"))
            #expect(await eventually { task.kind == .download })
            signals.raise("asked")
            try await written
            #expect(try directory.bytes(of: "file") == TestPattern.bytes(from: 0, count: 2_000_000))
        }
    }

    @Test("An existing file is an error, and the collected bytes stay available")
    func collision() async throws {
        let directory = try TemporaryDirectory()
        try directory.write([1], to: "file")
        try await TestOrigin.withOrigin(handler: .fixed(.text("new"))) { origin async throws in
            let session = HTTPSession.own()
            let task = await session.task(for: try HTTPRequest(.get, origin))
            let error = try #require(
                await #expect(throws: HTTPError.self) {
                    try await task.becomeDownload(to: directory.path("file"))
                })
            #expect(error.code == .fileExists)
            #expect(try directory.contents() == ["file"])
            #expect(try directory.bytes(of: "file") == [1])
            #expect(task.kind == .data)
            try await task.becomeDownload(to: directory.path("other"))
            #expect(try directory.bytes(of: "other") == Array("new".utf8))
            await #expect(throws: HTTPError.self) { try await task.becomeDownload(to: directory.path("third")) }
        }
    }

    @Test("If a file cannot be created during the body, no byte is lost and another file can be tried")
    func secondFile() async throws {
        let directory = try TemporaryDirectory()
        let bytes = TestPattern.bytes(from: 0, count: BecomingDownloadTests.size)
        let script = BecomingDownloadTests.script(stoppingBehind: 5, isChunked: false)
        try await TestOrigin.withOrigin(scripts: script) { origin async throws in
            let task = await HTTPSession.own().task(for: try HTTPRequest(.get, origin))
            let progress = task.downloadProgress
            #expect(await eventually { progress.current.completedByteCount == 5 })
            async let rejected: Void = task.becomeDownload(to: directory.path("none/file"))
            #expect(await eventually { task.kind == .download })
            origin.signals.raise("go")
            do {
                try await rejected
                Issue.record("a file was stored in a directory that does not exist")
            } catch let error as HTTPError {
                #expect(error.code == .fileFailed)
            }
            #expect(try await task.value.body == bytes)
            try await task.becomeDownload(to: directory.path("file"))
            #expect(try directory.bytes(of: "file") == bytes)
        }
    }

    @Test("A file that the delegate wrote is the download, and no other file replaces it")
    func delegated() async throws {
        let directory = try TemporaryDirectory()
        let path = directory.path("delegate")
        let delegate = RecordingDelegate(received: { _ in .becomeDownload(to: path, overwrites: true) })
        try await TestOrigin.withOrigin(handler: .fixed(.text("new"))) { origin async throws in
            let session = HTTPSession.own { $0.delegate = delegate }
            let task = await session.task(for: try HTTPRequest(.get, origin))
            _ = try await task.value
            #expect(task.kind == .download)
            let error = await #expect(throws: HTTPError.self) {
                try await task.becomeDownload(to: path, overwrites: true)
            }
            #expect(error?.code == .invalidRequest)
            #expect(try directory.bytes(of: "delegate") == Array("new".utf8))
        }
    }

    @Test("A file contains the whole body or is not created", arguments: ["rest", "whole", "read"])
    func whole(_ first: String) async throws {
        let bytes = TestPattern.bytes(from: 0, count: BecomingDownloadTests.size)
        let cut = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 24\r\n\r\n"),
            .send(Array(bytes[..<10])), .close)
        let full = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 24\r\n\r\n"),
            .send(bytes), .awaitClose)
        for isCut in [false, true] {
            let directory = try TemporaryDirectory()
            try await TestOrigin.withOrigin(scripts: isCut ? cut : full) { origin async throws in
                try await HTTPSession.own().stream(try HTTPRequest(.get, origin)) { _, body in
                    let body = body.buffering()
                    // A file that cannot be created loses no bytes.
                    await #expect(throws: HTTPError.self) {
                        try await body.write(to: directory.path("none/file"), .whole)
                    }
                    do {
                        switch first {
                        case "rest": try await body.write(to: directory.path("first"), .rest)
                        case "whole": try await body.write(to: directory.path("first"), .whole)
                        default: _ = try await body.collect()
                        }
                        #expect(!isCut)
                    } catch {
                        #expect(isCut)
                    }
                    let isThere = first == "read" && !isCut
                    for name in ["second", "third"] {
                        do {
                            try await body.write(to: directory.path(name), .whole)
                            #expect(isThere && name == "second")
                        } catch let error as HTTPError {
                            #expect(error.code == .limitExceeded || error.code == .truncated)
                        }
                    }
                    if isCut {
                        await #expect(throws: HTTPError.self) {
                            try await body.write(to: directory.path("fourth"), .rest)
                        }
                    }
                }
            }
            let written = isCut ? [] : [first == "read" ? "second" : "first"]
            #expect(try directory.contents().sorted() == written)
            for name in written { #expect(try directory.bytes(of: name) == bytes) }
        }
    }

    @Test("The head of a task is that of its latest response")
    func latestHead() async throws {
        let cut = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 200 OK\r\nServer: first\r\nContent-Length: 10\r\n\r\n01234"),
            .close)
        let full = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 200 OK\r\nServer: second\r\nContent-Length: 2\r\n\r\nok"),
            .awaitClose)
        try await TestOrigin.withOrigin(scripts: cut, full) { origin async throws in
            let session = HTTPSession.own { $0.retry = .transient(backoff: .constant(.zero), budget: nil) }
            let task = await session.task(for: try HTTPRequest(.get, origin))
            #expect(try await task.value.text == "ok")
            #expect(try await task.response.headerFields[.server] == "second")
        }
    }

    @Test("A body that is cut or cancelled leaves no file", arguments: [false, true])
    func failure(isCancelled: Bool) async throws {
        let directory = try TemporaryDirectory()
        let script = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234"), .await("go"),
            isCancelled ? .awaitClose : .close)
        try await TestOrigin.withOrigin(scripts: script) { origin async throws in
            let task = await HTTPSession.own().task(for: try HTTPRequest(.get, origin))
            let progress = task.downloadProgress
            #expect(await eventually { progress.current.completedByteCount == 5 })
            async let written: Void = task.becomeDownload(to: directory.path("file"))
            #expect(await eventually { task.kind == .download })
            if isCancelled { await task.cancel() }
            origin.signals.raise("go")
            do {
                try await written
                Issue.record("a body of half its length was taken for whole")
            } catch {
                #expect(isCancelled ? error is CancellationError : (error as? HTTPError)?.code == .truncated)
            }
            #expect(try directory.contents().isEmpty)
        }
    }

    @Test("Writing the whole body is rejected if the bytes already read were not buffered")
    func forgotten() async throws {
        let directory = try TemporaryDirectory()
        try await TestOrigin.withOrigin(handler: .fixed(.pattern(100_000))) { origin async throws in
            let session = HTTPSession.own()
            for remembers in [false, true] {
                let error = try #require(
                    await #expect(throws: HTTPError.self) {
                        try await session.stream(try HTTPRequest(.get, origin)) { _, given in
                            let body = remembers ? given.buffering(upTo: 10) : given
                            var iterator = body.makeAsyncIterator()
                            _ = try await iterator.next()
                            try await body.write(to: directory.path("file"), .whole)
                        }
                    })
                #expect(error.code == .limitExceeded)
            }
            #expect(try directory.contents().isEmpty)
        }
    }
}
