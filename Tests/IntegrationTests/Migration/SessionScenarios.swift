import Foundation
import Martlet
import MartletTestSupport
import MartletTesting
import Synchronization
import Testing

/// The features of AFNetworking that its managers and their tasks have.
enum SessionScenarios {
    static let all = [
        MigrationScenario(
            "A1", "Data, upload and download tasks exist, also from data, a file or a stream", tasks),
        MigrationScenario("A3", "Tasks are listed by kind", taskLists),
        MigrationScenario(
            "A4", "A session finishes its tasks or cancels them, and rejects new ones", invalidation),
        MigrationScenario(
            "A5", "A delegate decides about each step of a call and is notified of it", delegate),
        MigrationScenario("A6", "Events report that tasks resume, pause and complete", events),
        MigrationScenario(
            "A7", "A caller continues on its own executor, and a group of calls ends together", executors),
    ]

    private static func pieces(_ texts: String...) -> AsyncStream<[UInt8]> {
        AsyncStream { continuation in
            for text in texts { continuation.yield(Array(text.utf8)) }
            continuation.finish()
        }
    }

    static func tasks() async throws {
        try await withDirectory { directory async throws in
            try directory.write("from a file", to: "in")
            let content = OriginContent(body: .pattern(3_000_000), entityTag: "\"t\"")
            let isHeld = Mutex(true)
            try await TestOrigin.withOrigin { request in
                guard request.path == "/big" else { return .text(try await request.collectText()) }
                return content.response(to: request).with { response in
                    if isHeld.withLock({ $0 }) {
                        response.fault = OriginFault(.stall, afterBodyBytes: 2_000_000)
                    }
                }
            } run: { origin async throws in
                let session = HTTPSession.plain()
                let request = try HTTPRequest(method: .put, url: origin.url())
                for (body, kind, text) in [
                    (HTTPBody.none, HTTPTask.Kind.data, ""),
                    (.file(directory.file("in")), .upload, "from a file"),
                    (.bytes(Array("data".utf8)), .upload, "data"),
                    (.once(pieces("a", "stream")), .upload, "astream"),
                ] {
                    let task = await session.task(for: request, body: body)
                    #expect(task.kind == kind)
                    #expect(try await task.value.text == text)
                }
                let url = origin.url("/big")
                let resumed = try session.startDownload(
                    url, to: .file(directory.file("resumed")), options: DownloadOptions(segments: 1))
                for await value in resumed.progress where value.completedByteCount >= 1_000_000 { break }
                await resumed.pause()
                isHeld.withLock { $0 = false }
                try await resumed.resume()
                #expect(try await resumed.value.resumedByteCount >= 1_000_000)
                let whole = await session.downloadTask(
                    for: try HTTPRequest(method: .get, url: url), to: directory.file("whole"))
                #expect(whole.kind == .download)
                _ = try await whole.value
                for name in ["resumed", "whole"] {
                    #expect(try directory.bytes(of: name) == TestPattern.bytes(from: 0, count: 3_000_000))
                }
            }
        }
    }

    static func taskLists() async throws {
        let gate = Gate()
        try await TestOrigin.withOrigin { _ in
            await gate.pass()
            return .text("x")
        } run: { origin async throws in
            defer { gate.open() }
            try await withDirectory { directory async throws in
                let session = HTTPSession.plain()
                let request = try HTTPRequest(method: .put, url: origin.url())
                let data = await session.task(for: request)
                let upload = await session.task(for: request, body: .text("x"))
                let download = await session.downloadTask(for: request, to: directory.file("out"))
                try await origin.waitForRequests(count: 3)
                #expect(await session.tasks.map(\.id) == [data.id, upload.id, download.id])
                #expect(await session.tasks(of: .data).map(\.id) == [data.id])
                #expect(await session.tasks(of: .upload).map(\.id) == [upload.id])
                #expect(await session.tasks(of: .download).map(\.id) == [download.id])
                gate.open()
                for task in [data, upload, download] { _ = try await task.value }
                #expect(await session.tasks.isEmpty)
            }
        }
    }

    static func invalidation() async throws {
        let gate = Gate()
        try await TestOrigin.withOrigin { _ in
            await gate.pass()
            return .text("x")
        } run: { origin async throws in
            defer { gate.open() }
            let (finishing, cancelling) = (HTTPSession.plain(), HTTPSession.plain())
            let request = try HTTPRequest(method: .get, url: origin.url())
            let (first, second) = (await finishing.task(for: request), await cancelling.task(for: request))
            try await origin.waitForRequests(count: 2)
            await cancelling.invalidateAndCancel()
            await #expect(throws: CancellationError.self) { try await second.value }
            async let end: Void = finishing.finishAndInvalidate()
            gate.open()
            #expect(try await first.value.text == "x")
            await end
            for session in [finishing, cancelling] {
                let error = await #expect(throws: HTTPError.self) { try await session.send(request) }
                #expect(error?.code == .sessionInvalidated)
            }
            try await origin.recorder.waitForOpenConnections(atMost: 0)
            #expect(origin.requests.count == 2)
        }
    }

    /// A delegate that replies to every decision and records every call.
    private final class Recorder: SessionDelegate {
        let notices = Mutex<[String]>([])
        let directory: TemporaryDirectory

        init(_ directory: TemporaryDirectory) { self.directory = directory }

        private func record(_ notice: String) { notices.withLock { $0.append(notice) } }

        func respond(to challenge: AuthenticationChallenge, in context: CallContext) -> ChallengeDisposition {
            record("challenge \(challenge.realm ?? "")")
            return .credentials(.basic(user: "user", password: "pass"))
        }
        func redirect(
            by response: HTTPResponse, from request: HTTPRequest, to proposed: HTTPRequest,
            in context: CallContext
        ) -> HTTPRequest? {
            record("redirect to \(proposed.path ?? "")")
            return proposed
        }
        func replacementBody(for request: HTTPRequest, in context: CallContext) -> HTTPBody? {
            record("new body")
            return .once(SessionScenarios.pieces("once"), length: 4)
        }
        func received(_ response: HTTPResponse, in context: CallContext) -> ResponseDisposition {
            record("received \(response.status.code)")
            switch response.headerFields[.contentLanguage] {
            case "cancel": return .cancel
            case "file": return .becomeDownload(to: directory.file("became"))
            default: return .allow
            }
        }
        func destination(
            of response: HTTPResponse, proposed: FilePath, in context: CallContext
        ) -> FilePath? { directory.file("chosen") }
        func bodySent(_ progress: TransferProgress, in context: CallContext) {
            if progress.isFinished { record("sent \(progress.completedByteCount)") }
        }
        func bodyReceived(_ byteCount: Int, in context: CallContext) { record("bytes \(byteCount)") }
        func downloadFinished(at path: FilePath, in context: CallContext) {
            record("downloaded \(path.lastComponent?.string ?? "")")
        }
        func metricsCollected(_ metrics: HTTPMetrics, in context: CallContext) {
            record("metrics \(metrics.receivedBodyByteCount)")
        }
        func completed(_ result: CallResult, in context: CallContext) {
            if case .succeeded = result { record("succeeded") } else { record("failed") }
        }
        func sessionInvalidated() { record("invalidated") }

        /// Returns the calls since the last time. Those about the sent body, which come at any time before the end, are
        /// first.
        func taken() -> [String] {
            notices.withLock { notices in
                defer { notices = [] }
                return notices.filter { $0.hasPrefix("sent") } + notices.filter { !$0.hasPrefix("sent") }
            }
        }
    }

    static func delegate() async throws {
        try await withDirectory { directory async throws in
            try await TestOrigin.withOrigin { request in
                _ = try await request.collectBody()
                if request.path == "/moved" { return .redirect(to: "/secret", status: 307) }
                if request.path == "/secret", !request.headers.contains("Authorization") {
                    return OriginResponse(401, headers: ["WWW-Authenticate": "Basic realm=\"r\""])
                }
                return .text("hello").with {
                    $0.headers["Content-Language"] = String(request.path.dropFirst())
                }
            } run: { origin async throws in
                let recorder = Recorder(directory)
                let session = HTTPSession.plain { $0.delegate = recorder }
                _ = try await session.put(origin.url("/moved"), body: .once(pieces("once"), length: 4))
                #expect(
                    recorder.taken().filter { !$0.hasPrefix("sent") } == [
                        "new body", "redirect to /secret", "new body", "challenge r", "received 200",
                        "bytes 5", "metrics 5", "succeeded",
                    ])
                _ = try await session.put(origin.url(), body: .text("four"))
                #expect(recorder.taken() == ["sent 4", "received 200", "bytes 5", "metrics 5", "succeeded"])
                let cancelled = await #expect(throws: HTTPError.self) { try await session.get(origin.url("/cancel")) }
                #expect(cancelled?.code == .cancelledByDelegate)
                #expect(recorder.taken() == ["received 200", "failed"])
                #expect(try await session.get(origin.url("/file")).bytes == [])
                #expect(
                    recorder.taken() == [
                        "received 200", "bytes 5", "downloaded became", "metrics 5", "succeeded",
                    ])
                try await session.save(
                    HTTPRequest(method: .get, url: origin.url()), to: directory.file("given"),
                    overwrites: false)
                #expect(
                    recorder.taken() == [
                        "received 200", "bytes 5", "downloaded chosen", "metrics 5", "succeeded",
                    ])
                for name in ["became", "chosen"] {
                    #expect(try directory.bytes(of: name) == Array("hello".utf8))
                }
                await session.finishAndInvalidate()
                #expect(recorder.taken() == ["invalidated"])
            }
        }
    }

    static func events() async throws {
        let gate = Gate()
        try await TestOrigin.withOrigin { _ in
            await gate.pass()
            return .text("hello")
        } run: { origin async throws in
            defer { gate.open() }
            let session = HTTPSession.plain()
            let (events, few) = (session.events, session.events(buffering: 2))
            let task = await session.task(for: try HTTPRequest(method: .get, url: origin.url("/a?secret=1")))
            try await origin.waitForRequests(count: 1)
            await task.pause()
            await task.resume()
            gate.open()
            let exchange = try await task.value
            await session.finishAndInvalidate()
            var found: [String] = []
            for await event in events {
                switch event.kind {
                case .started(let method, let url): found.append("started \(method) \(url)")
                case .suspended, .resumed, .sessionInvalidated: found.append("\(event.kind)")
                case .finished(let metrics):
                    #expect(metrics == exchange.metrics)
                    found.append("finished")
                default: continue
                }
                #expect(event.call == task.id || event.call == nil)
            }
            #expect(
                found == [
                    "started GET \(origin.url("/a"))", "suspended", "resumed", "finished",
                    "sessionInvalidated",
                ])
            var dropped = 0
            for await event in few { if case .dropped(let count) = event.kind { dropped += count } }
            #expect(dropped > 0)
        }
    }

    @MainActor static func executors() async throws {
        try await TestOrigin.withOrigin { request in
            .text(request.path)
        } run: { origin async throws in
            let session = HTTPSession.plain()
            MainActor.assertIsolated()
            _ = try await session.get(origin.url())
            MainActor.assertIsolated()
            let urls = (1...10).map { origin.url("/\($0)") }
            let texts = try await withThrowingTaskGroup(of: String.self) { group in
                for url in urls { group.addTask { try await session.get(url).text } }
                var texts: Set<String> = []
                for try await text in group { texts.insert(text) }
                return texts
            }
            #expect(texts == Set((1...10).map { "/\($0)" }))
            #expect(session.runningCallCount == 0)
        }
    }
}
