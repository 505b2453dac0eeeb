import Foundation
import Martlet
import MartletImages
import MartletTestSupport
import MartletTesting
import Synchronization
import Testing

/// The features of MKNetworkKit 2 that requests, tasks and responses have.
enum TaskScenarios {
    static let all = [
        MigrationScenario("M8", "A task has a state, and a response a source", states),
        MigrationScenario(
            "M9", "Responses without a lifetime are fresh for ten minutes, images for a week", freshness),
        MigrationScenario("M10", "Uploads and downloads report their progress", progress),
        MigrationScenario("M12", "The end of all background transfers is reported", allFinished),
        MigrationScenario("M13", "A response is bytes, text, JSON, a value or an image", responses),
        MigrationScenario("M14", "A status of 400 or more is an error that contains the response", statuses),
        MigrationScenario("M15", "The running requests of a session are listed and cancelled", runningTasks),
    ]

    static func states() async throws {
        let gate = Gate()
        defer { gate.open() }
        try await TestOrigin.withOrigin { request in
            if request.path == "/held" { await gate.pass() }
            return .text("x", status: 200)
        } run: { origin async throws in
            defer { gate.open() }
            let session = HTTPSession.plain()
            let task = await session.task(for: try HTTPRequest(method: .get, url: origin.url("/held")))
            try await origin.waitForRequests(count: 1)
            #expect(await task.state == .sending)
            await task.pause()
            #expect(await task.state == .paused)
            await task.resume()
            let cancelled = await session.task(for: try HTTPRequest(method: .get, url: origin.url("/held")))
            await cancelled.cancel()
            await #expect(throws: CancellationError.self) { try await cancelled.value }
            #expect(await cancelled.state == .finished(.cancelled))
            let failed = await session.task(
                for: try HTTPRequest(method: .get, url: origin.url()),
                options: RequestOptions(timeouts: Timeouts(total: .zero)))
            await #expect(throws: HTTPError.self) { try await failed.value }
            #expect(await failed.state == .finished(.failed))
            gate.open()
            #expect(try await task.value.source == .network)
            #expect(await task.state == .finished(.completed))
        }
        for (age, mode, source) in [
            (nil, CacheMode.standard, HTTPExchange.Source.cache), (900, .standard, .validatedCache),
            (900, .preferCache, .staleCache),
        ] {
            try await TestOrigin.withOrigin(handler: .versions("max-age=600", age: age)) {
                origin async throws in
                let session = HTTPSession.plain {
                    $0.cache = .memoryOnly()
                    $0.cacheMode = mode
                }
                #expect(try await session.get(origin.url()).source == .network)
                let task = await session.task(for: try HTTPRequest(method: .get, url: origin.url()))
                #expect(try await task.value.source == source)
                #expect(await task.state == .finished(.completed))
            }
        }
    }

    static func freshness() async throws {
        try await TestOrigin.withOrigin { request in
            let type = request.path == "/image" ? "image/png" : "text/plain"
            return OriginResponse(
                headers: ["Content-Type": type, "Age": request.query["age"] ?? "0"], body: .text("x"))
        } run: { origin async throws in
            func isFresh(_ path: String, _ rules: DefaultFreshness) async throws -> Bool {
                var options = ResponseCache.Options()
                options.defaultFreshness = rules
                let session = HTTPSession.plain { $0.cache = .memoryOnly(options: options) }
                _ = try await session.get(origin.url(path))
                return try await session.get(origin.url(path)).source == .cache
            }
            #expect(try await !isFresh("/text", .none))
            #expect(try await isFresh("/text?age=590", .tenMinutesAndImagesSevenDays))
            #expect(try await !isFresh("/text?age=600", .tenMinutesAndImagesSevenDays))
            #expect(try await isFresh("/image?age=604000", .tenMinutesAndImagesSevenDays))
            #expect(try await !isFresh("/image?age=604800", .tenMinutesAndImagesSevenDays))
        }
    }

    static func progress() async throws {
        try await withDirectory { directory async throws in
            try Data(TestPattern.bytes(from: 0, count: 300_000)).write(
                to: URL(filePath: directory.appending("in")))
            try await TestOrigin.withOrigin { request in
                if request.method == .get { return .pattern(200_000) }
                return .text("\(try await request.collectBody().count)")
            } run: { origin async throws in
                let api = try HTTPSession.plain().host(origin.base)
                let reported = Mutex<[TransferProgress]>([])
                let body = HTTPBody.multipart { form in
                    form.field("name", "value")
                    form.file("file", at: directory.file("in"))
                }
                let exchange = try await api.upload(body, to: "up") { value in
                    reported.withLock { $0.append(value) }
                }
                let sent = try #require(reported.withLock { $0.last })
                #expect(sent.isFinished)
                #expect(sent.totalByteCount == sent.completedByteCount)
                #expect(sent.completedByteCount > 300_000)
                #expect(exchange.text == "\(sent.completedByteCount)")
                let task = try await api.task(method: .put, "up", body: body)
                var last: TransferProgress?
                for await value in task.uploadProgress { last = value }
                #expect(last == sent)

                let whole = TransferProgress(
                    completedByteCount: 200_000, totalByteCount: 200_000, isFinished: true)
                try await api.save("down", to: directory.file("a")) { value in
                    reported.withLock { $0.append(value) }
                }
                #expect(reported.withLock { $0.last } == whole)
                let download = await api.session.downloadTask(
                    for: try HTTPRequest(method: .get, url: origin.url()), to: directory.file("b"))
                for await value in download.downloadProgress { last = value }
                #expect(last == whole)
                _ = try await download.value
                #expect(try directory.bytes(of: "a") == TestPattern.bytes(from: 0, count: 200_000))
                #expect(try directory.bytes(of: "b") == directory.bytes(of: "a"))
            }
        }
    }

    static func allFinished() async throws {
        try await withDirectory { directory async throws in
            try await TestOrigin.withOrigin(
                handler: .router { router in
                    router.get("/missing", .status(404))
                    router.get("/{size}") { .pattern(UInt64($0.number(of: "size") ?? 0)) }
                }
            ) { origin async throws in
                let manager = try await DownloadManager.background(directory: directory.file("queue"))
                let events = manager.events
                for name in ["10", "20000", "missing"] {
                    try await manager.add(origin.url(name), to: directory.file(name))
                }
                _ = try await manager.allFinished
                #expect(try directory.bytes(of: "20000") == TestPattern.bytes(from: 0, count: 20_000))
                #expect(!FileManager.default.fileExists(atPath: directory.appending("missing")))
                await manager.close()
                var finished = 0
                var ends = 0
                for await event in events {
                    if case .finished = event { finished += 1 }
                    if case .allFinished = event { ends += 1 }
                }
                #expect(finished == 2)
                #expect(ends >= 1)
            }
        }
    }

    private struct User: Codable, Equatable { var name: String }

    static func responses() async throws {
        let pixel =
            "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
        let picture = [UInt8](try #require(Data(base64Encoded: pixel)))
        try await TestOrigin.withOrigin(
            handler: .router { router in
                router.get("/latin", .fixed(.bytes([0x6D, 0xFC], contentType: "text/plain; charset=iso-8859-1")))
                router.get("/user", .fixed(.json(text: #"{"name":"Anna"}"#)))
                router.get("/picture", .fixed(.bytes(picture, contentType: "image/png")))
            }
        ) { origin async throws in
            let session = HTTPSession.plain()
            let latin = try await session.get(origin.url("/latin"))
            #expect(latin.bytes == [0x6D, 0xFC])
            #expect(latin.text == "m\u{FC}")
            let user = try await session.get(origin.url("/user"))
            #expect(try user.json["name"]?.stringValue == "Anna")
            #expect(try user.decode(User.self) == User(name: "Anna"))
            let image = try await session.get(origin.url("/picture")).imageInfo()
            #expect(image.format == .png)
            #expect(image.size == ImageSize(width: 1, height: 1))
        }
    }

    static func statuses() async throws {
        try await TestOrigin.withOrigin { request in
            .pattern(1_000_000).with {
                $0.status = request.query["status"].flatMap { Int($0) } ?? 200
            }
        } run: { origin async throws in
            let session = HTTPSession.plain()
            #expect(try await session.get(origin.url()).validated().statusCode == 200)
            for status in [400, 404, 500, 503] {
                let exchange = try await session.get(origin.url("/?status=\(status)"))
                for check in [
                    { _ = try exchange.validated() }, { _ = try exchange.decode() as User },
                ] as [() throws -> Void] {
                    let error = try #require(#expect(throws: HTTPError.self) { try check() })
                    #expect(error.code == .unacceptableStatus)
                    #expect(error.exchange?.statusCode == status)
                    #expect(error.exchange?.body == exchange.body)
                }
            }
            let error = try #require(
                await #expect(throws: HTTPError.self) {
                    try await session.stream(
                        HTTPRequest(method: .get, url: origin.url("/?status=404")), validate: .success
                    ) { _, body in try await body.collect() }
                })
            let body = try #require(error.exchange?.body)
            #expect(!body.isEmpty && body.count <= 64 << 10)
            #expect(body == TestPattern.bytes(from: 0, count: body.count))
        }
    }

    static func runningTasks() async throws {
        let gate = Gate()
        defer { gate.open() }
        try await TestOrigin.withOrigin { _ in
            await gate.pass()
            return .text("x")
        } run: { origin async throws in
            defer { gate.open() }
            let session = HTTPSession.plain()
            var made: [HTTPTask] = []
            for path in ["/a", "/b", "/c"] { made.append(await session.task(for: origin.url(path))) }
            try await origin.waitForRequests(count: 3)
            let tasks = await session.tasks
            #expect(tasks.map(\.request.path) == ["/a", "/b", "/c"])
            for task in tasks { task.cancel() }
            for task in made {
                await #expect(throws: CancellationError.self) { try await task.value }
            }
            #expect(await session.tasks.isEmpty)
            #expect(await eventually { session.runningCallCount == 0 })
        }
    }
}
