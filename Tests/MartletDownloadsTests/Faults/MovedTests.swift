import Martlet
import MartletTesting
import MartletTestSupport
import MartletTransport
import Synchronization
import Testing

/// Files that have moved: after redirects, at expiring URLs, on changed hosts.
@Suite("Files that move")
struct MovedTests {
    /// The number of requests for a redirect.
    private final class Front: Sendable {
        private let state = Mutex<[OriginFields]>([])

        var requests: [OriginFields] { state.withLock { $0 } }

        func note(_ request: OriginRequest) -> Int {
            state.withLock {
                $0.append(request.headers)
                return $0.count
            }
        }
    }

    /// Runs a closure with a scene, the URL of a redirect to a freshly signed URL of the scene on another host, and the
    /// count of requests for the redirect.
    private func withSignedURL(
        _ conduct: RangeBehavior, run body: (RangeScene, String, Front) async throws -> Void
    ) async throws {
        try await RangeScene.with(conduct) { scene in
            let front = Front()
            try await TestOrigin.withOrigin { request in
                let number = front.note(request)
                return .redirect(to: "http://localhost:\(scene.origin.port)/signed?n=\(number)")
            } run: { origin in
                try await body(scene, origin.url("/file"), front)
            }
        }
    }

    @Test(
        "A signed URL that expires during the download is requested again, and the stored bytes stay",
        arguments: [400, 403])
    func expired(_ status: Int) async throws {
        let conduct = RangeBehavior(
            Samples.one,
            acts: [
                .cut(request: 1, after: Samples.cut),
                RangeResponseOverride(on: { $0.number > 1 && $0.target.hasSuffix("n=1") }) {
                    $0.replacement = .text("expired\n", status: status)
                },
            ])
        try await withSignedURL(conduct) { scene, url, front in
            var options = RangeScene.options
            options.headers[.authorization] = "Bearer hidden"
            let run = try await scene.run(options, from: url)
            try await scene.expectOrder(after: run, versions: [Samples.one])
            #expect(run.value?.byteCount == Samples.one.byteCount, "\(run.log)")
            #expect(front.requests.count == 2)
            #expect(front.requests.allSatisfy { $0["Authorization"] == "Bearer hidden" })
            #expect(run.requests.allSatisfy { !$0.fields.contains("Authorization") })
            #expect(run.requests.last?.start == Samples.cut, "\(run.log)")
            #expect(run.requests.last?.ifRange == "\"one\"")
            #expect(run.value?.url.description.contains("signed?n=2") == true)
        }
    }

    @Test("A later run requests the original URL and resumes at the new location")
    func laterRun() async throws {
        let conduct = RangeBehavior(Samples.one, acts: [.cut(request: 1, after: Samples.cut)])
        try await withSignedURL(conduct) { scene, url, front in
            let first = try await scene.run(RangeScene.options { $0.retry.maximumRetries = 0 }, from: url)
            #expect(first.error?.resumableByteCount == Samples.cut, "\(first.log)")
            let second = try await scene.run(from: url)
            try await scene.expectOrder(after: second, versions: [Samples.one])
            #expect(second.value?.resumedByteCount == Samples.cut, "\(second.log)")
            #expect(front.requests.count == 2)
            #expect(second.requests.last?.target == "/signed?n=2")
        }
    }

    @Test("An expired URL without an original one fails and keeps the stored bytes")
    func expiredForGood() async throws {
        try await RangeScene.with(Samples.cutOnce()) { scene in
            scene.ranges.play(
                RangeBehavior(
                    Samples.one,
                    acts: [
                        .cut(request: 1, after: Samples.cut),
                        .answer(from: 2, .text("expired\n", status: 403)),
                    ]))
            let run = try await scene.run()
            try await scene.expectOrder(after: run, versions: [Samples.one])
            #expect(run.error?.code == .unacceptableStatus, "\(run.log)")
            #expect(run.error?.resumableByteCount == Samples.cut, "\(run.log)")
        }
    }

    @Test("A new URL from the caller keeps the stored bytes if the validators are the same")
    func resumedElsewhere() async throws {
        let expired = RangeBehavior(
            Samples.one,
            acts: [
                .cut(request: 1, after: Samples.cut), .answer(from: 2, .text("expired\n", status: 403)),
            ])
        try await RangeScene.with(expired) { scene in
            let download = try scene.session.startDownload(
                scene.url, to: .file(scene.path), options: RangeScene.options)
            await #expect(throws: HTTPError.self) { try await download.value }
            try await RangeOrigin.with(RangeBehavior(Samples.one)) { ranges, origin in
                try await download.resume(from: origin.url("/elsewhere"))
                let result = try await download.value
                #expect(result.byteCount == Samples.one.byteCount)
                #expect(ranges.requests.first?.start == Samples.cut)
                #expect(ranges.requests.first?.ifRange == "\"one\"")
                #expect(ranges.sentByteCount == Samples.one.byteCount - Samples.cut)
            }
            #expect(try scene.directory.version(of: RangeScene.name, among: [Samples.one]) == 0)
            #expect(try scene.directory.names() == [RangeScene.name])
        }
    }

    @Test("A new URL with another version restarts the download")
    func otherVersionElsewhere() async throws {
        let expired = RangeBehavior(
            Samples.one,
            acts: [
                .cut(request: 1, after: Samples.cut), .answer(from: 2, .text("expired\n", status: 403)),
            ])
        try await RangeScene.with(expired) { scene in
            let download = try scene.session.startDownload(
                scene.url, to: .file(scene.path), options: RangeScene.options)
            await #expect(throws: HTTPError.self) { try await download.value }
            try await RangeOrigin.with(RangeBehavior(Samples.sameLength)) { _, origin in
                try await download.resume(from: origin.url("/elsewhere"))
                _ = try await download.value
            }
            let version = try scene.directory.version(of: RangeScene.name, among: [Samples.sameLength])
            #expect(version == 0)
        }
    }

    @Test("A certificate that is no longer trusted fails the download and keeps the stored bytes")
    func otherCertificate() async throws {
        let ranges = RangeOrigin(Samples.cutOnce())
        let directory = try DownloadDirectory()
        let path = directory.file(RangeScene.name)
        try await TestOrigin.withOrigin(.tls(), handler: ranges.handler) { good in
            func session(to origin: TestOrigin) -> HTTPSession {
                HTTPSession.own(good) {
                    $0.connectOverrides = [
                        ConnectOverride(toHost: "127.0.0.1", toPort: origin.port)
                    ]
                }
            }
            let url = "https://localhost/file.bin"
            let options = RangeScene.options { $0.retry.maximumRetries = 0 }
            let cut = await #expect(throws: HTTPError.self) {
                try await session(to: good).download(url, to: path, options: options)
            }
            #expect(cut?.resumableByteCount == Samples.cut)
            ranges.play(RangeBehavior(Samples.one))
            for certificate in [OriginTLS.Certificate.expired, .unknownAuthority, .wrongName] {
                try await TestOrigin.withOrigin(.tls(OriginTLS(certificate)), handler: ranges.handler) {
                    other in
                    let rejected = await #expect(throws: HTTPError.self) {
                        try await session(to: other).download(url, to: path, options: RangeScene.options)
                    }
                    #expect(rejected?.code == .tlsFailed)
                    #expect(rejected?.resumableByteCount == Samples.cut)
                }
            }
            #expect(ranges.requests.isEmpty)
            #expect(try !directory.names().contains(RangeScene.name))
            let result = try await session(to: good).download(url, to: path)
            #expect(result.resumedByteCount == Samples.cut)
            #expect(try directory.version(of: RangeScene.name, among: [Samples.one]) == 0)
        }
    }

    @Test("Credentials of the URL and of headers are not on disk during a download")
    func secrets() async throws {
        try await RangeScene.with(Samples.cutOnce()) { scene in
            var options = RangeScene.options { $0.retry.maximumRetries = 0 }
            options.headers[.authorization] = "Bearer hidden"
            options.headers[.cookie] = "session=hidden"
            let url = scene.url.replacing("http://", with: "http://user:hidden@")
            let run = try await scene.run(options, from: url)
            #expect(run.error != nil)
            let names = try scene.directory.names()
            #expect(!names.isEmpty)
            for name in names {
                let text = String(decoding: try scene.directory.contents(of: name), as: UTF8.self)
                #expect(!text.contains("hidden"), "\(name)")
            }
            #expect(run.error?.message.contains("hidden") == false)
        }
    }
}
