import Foundation
import Martlet
import MartletContent
import MartletTestSupport
import MartletTesting
import MartletStorage
import Testing

@testable import MartletDownloads

@Suite("Downloads with mirrors", .timeLimit(.minutes(10)))
struct MirrorTests {
    @Test("A wrong length that only a later part shows is an error")
    func lateLength() async throws {
        let first = RangeBehavior(Sample.longer, acts: [.cut(request: 1, after: Sample.cut)])
            .with { $0.framing = .chunked() }
        try await MirrorScene.with([first]) { scene in
            let run = try await scene.run(try scene.options { ($0.segments, $0.expectedByteCount) = (1, 300_000) })
            #expect(run.error?.code == .representationChanged, "\(run)")
            #expect(!scene.names.contains("file.bin"))
        }
    }

    @Test("A mirror without ranges and validators serves the whole file after all others have failed")
    func fallback() async throws {
        let mirror = RangeBehavior(Sample.tagged(Sample.one, nil)).with { $0.ranges = .ignored }
        try await MirrorScene.with([Sample.dying(Sample.one), mirror]) { scene in
            let run = try await scene.run(try scene.options())
            #expect(scene.isFile(Sample.one), "\(run)")
            #expect(run.restarts == [.otherURL])
        }
    }

    @Test("Segments are spread over all URLs")
    func parallel() async throws {
        let large = RangeVersion(12 << 20, entityTag: "\"large\"")
        let first = RangeBehavior(large, acts: [.hold(request: 1, after: 1 << 20, "first")])
        try await MirrorScene.with([first, RangeBehavior(large), RangeBehavior(large)]) { scene in
            let download = try scene.session.startDownload(
                try scene.urls[0], to: .file(scene.path), options: try scene.options())
            // Until both mirrors have sent parts, the first response is not complete.
            let areUsed = await eventually { scene.ranges.dropFirst().allSatisfy { $0.sentByteCount > 0 } }
            #expect(areUsed)
            scene.ranges[0].release()
            let result = try await download.value
            #expect(scene.isFile(large))
            let counts = try #require(result.metrics?.receivedByteCounts)
            #expect(counts.count == 3)
            #expect(counts.values.reduce(0, +) == large.byteCount)
            #expect(Set(counts.keys) == Set(try scene.urls))
            for request in scene.ranges[1].requests { #expect(request.status == 206) }
        }
    }

    /// The reasons for which a mirror may continue the file of another server.
    enum Proof: CaseIterable, Sendable { case equalTag, digest, checksum }

    @Test("A mirror continues at the byte reached", arguments: Proof.allCases, [false, true])
    func continued(_ proof: Proof, ignoresRange: Bool) async throws {
        var first = Sample.dying(Sample.one)
        if ignoresRange { first.ranges = .ignored }
        var second = RangeBehavior(Sample.tagged(Sample.one, proof == .equalTag ? "\"one\"" : "\"mirror\""))
        let checksum = try Sample.sha256(Sample.one)
        if proof == .digest {
            for behavior in 0...1 {
                let field = "sha-256=:\(base64(checksum.bytes)):"
                if behavior == 0 { first.fields["Repr-Digest"] = field } else { second.fields["Repr-Digest"] = field }
            }
        }
        try await MirrorScene.with([first, second]) { scene in
            let run = try await scene.run(try scene.options { if proof == .checksum { $0.checksum = checksum } })
            #expect(scene.isFile(Sample.one), "\(run)")
            #expect(run.restarts.isEmpty)
            #expect(scene.ranges[1].requests.map(\.range) == ["bytes=100000-299999"])
            // The tag of one server is not sent to another, which is asked for a digest.
            #expect(scene.ranges[1].requests.allSatisfy { $0.ifRange == nil })
            #expect(
                (scene.ranges[1].requests.first?.fields["Want-Repr-Digest"] != nil) == (proof != .checksum))
            #expect(run.used == (try scene.urls))
            #expect(run.failed == [try scene.urls[0]])
        }
    }

    @Test("With a checksum, wrong bytes of any server are replaced", arguments: [[0, 1], [1, 0], [1, 1, 0]])
    func wrongFile(_ versions: [Int]) async throws {
        let files = [Sample.one, Sample.other]
        let behaviors = versions.enumerated().map { index, version in
            // The first response is cut, so that bytes of two servers are mixed.
            index == 0
                ? RangeBehavior(files[version], acts: [.cut(request: 1, after: Sample.cut)])
                : RangeBehavior(files[version])
        }
        try await MirrorScene.with(behaviors) { scene in
            // Enough time for the mirror to be requested before the first URL.
            let run = try await scene.run(
                try scene.options {
                    $0.checksum = try Sample.sha256(Sample.one)
                    ($0.retry.initialDelay, $0.retry.maximumDelay) = (.seconds(60), .seconds(60))
                })
            #expect(scene.isFile(Sample.one), "\(run)")
            #expect(!run.restarts.isEmpty && run.restarts.allSatisfy { $0 == .otherURL })
            #expect(scene.names == ["file.bin"])
        }
    }

    @Test("If no server has the right file, there is no file")
    func wrongEverywhere() async throws {
        let behaviors = [RangeBehavior(Sample.other), RangeBehavior(Sample.other)]
        try await MirrorScene.with(behaviors) { scene in
            let run = try await scene.run(try scene.options { $0.checksum = try Sample.sha256(Sample.one) })
            #expect(run.error?.code == .checksumMismatch)
            #expect(scene.names.isEmpty)
            for range in scene.ranges { #expect(range.requests.count == 1) }
        }
    }

    @Test("Without proof, bytes of two servers are never mixed", arguments: ["\"other\"", "W/\"one\"", nil])
    func neverMixed(_ tag: String?) async throws {
        let mirror = Sample.tagged(Sample.other, tag)
        try await MirrorScene.with([Sample.dying(Sample.one), RangeBehavior(mirror)]) { scene in
            let run = try await scene.run(try scene.options())
            if tag?.hasPrefix("\"") == true {
                #expect(scene.isFile(Sample.other), "\(run)")
                #expect(run.restarts == [.otherURL])
            } else {
                // A response without a strong validator may be the page of a captive portal.
                #expect(!scene.isFile(Sample.one))
                #expect(scene.names.contains("file.bin") == scene.isFile(Sample.other))
            }
        }
    }

    @Test("Without proof, a mirror waits while the first URL may recover")
    func recovered() async throws {
        let first = RangeBehavior(
            Sample.one, acts: [.cut(request: 1, after: Sample.cut), .answer(from: 2, through: 2, OriginResponse(503))])
        try await MirrorScene.with([first, RangeBehavior(Sample.other)]) { scene in
            let run = try await scene.run(try scene.options())
            #expect(scene.isFile(Sample.one), "\(run)")
            #expect(run.restarts.isEmpty)
        }
    }

    @Test("A file of another length is not used", arguments: [false, true])
    func otherLength(isKnown: Bool) async throws {
        let first = isKnown ? Sample.dead(404) : Sample.dying(Sample.one)
        try await MirrorScene.with([first, RangeBehavior(Sample.longer)]) { scene in
            let run = try await scene.run(try scene.options { if isKnown { $0.expectedByteCount = 300_000 } })
            let error = try #require(run.error)
            #expect(error.message.contains("all 2 URLs"))
            #expect(error.message.contains("310001"))
            #expect(!scene.names.contains("file.bin"))
            #expect(scene.ranges[1].requests.count == 1)
        }
    }

    @Test("Mirrors that fail do not end the download", arguments: [404, 410, 500, 503])
    func failingMirror(_ status: Int) async throws {
        let first = RangeBehavior(Sample.one, acts: [.cut(request: 1, after: Sample.cut)])
        try await MirrorScene.with([first, Sample.dead(status), Sample.dead(status)]) { scene in
            let run = try await scene.run(try scene.options())
            #expect(scene.isFile(Sample.one), "\(run)")
            #expect(run.restarts.isEmpty)
        }
    }

    @Test("The first URL that works serves the file")
    func failover() async throws {
        try await MirrorScene.with([Sample.dead(404), Sample.dead(500), RangeBehavior(Sample.one)]) { scene in
            let run = try await scene.run(try scene.options())
            #expect(scene.isFile(Sample.one), "\(run)")
            #expect(try run.result.get().url == scene.urls[2])
            #expect(run.used == [try scene.urls[2]])
        }
    }

    @Test("If all URLs fail, the error lists each of them")
    func allFail() async throws {
        try await MirrorScene.with([Sample.dead(404), Sample.dead(403), Sample.dead(503)]) { scene in
            let run = try await scene.run(try scene.options())
            let error = try #require(run.error)
            #expect(error.code == .unacceptableStatus)
            for (url, status) in zip(try scene.urls, ["404", "403", "503"]) {
                #expect(error.message.contains("\(url): \(status)"), "\(error.message)")
            }
            // The first request, one without Range after 403, and the retries of the transient failure.
            #expect(scene.ranges[0].requests.count == 1)
            #expect(scene.ranges[2].requests.count >= 3)
        }
    }

    @Test("A server that stalls is replaced")
    func stalled() async throws {
        let first = RangeBehavior(Sample.one, acts: [.hold(request: 1, after: Sample.cut, "stalled")])
        try await MirrorScene.with([first, RangeBehavior(Sample.one)]) { scene in
            let run = try await scene.run(
                try scene.options {
                    $0.stallTimeout = .milliseconds(200)
                    ($0.retry.initialDelay, $0.retry.maximumDelay) = (.seconds(300), .seconds(300))
                })
            #expect(scene.isFile(Sample.one), "\(run)")
            #expect(scene.ranges[1].requests.count == 1)
        }
    }

    @Test("A faster mirror takes over most bytes of a slow server")
    func slow() async throws {
        let file = RangeVersion(2 << 20, entityTag: "\"slow\"")
        let first = RangeBehavior(file).with { $0.pace = RangePace(50_000) }
        try await MirrorScene.with([first, RangeBehavior(file)]) { scene in
            let run = try await scene.run(try scene.options { $0.takeoverThreshold = nil })
            #expect(scene.isFile(file), "\(run)")
            let (counts, mirror) = (try run.result.get().metrics?.receivedByteCounts, try scene.urls[1])
            #expect(counts?[mirror] ?? 0 > file.byteCount / 2)
        }
    }

    @Test("A later run continues from a mirror, with the validator of that mirror", arguments: [false, true])
    func resumed(hasChecksum: Bool) async throws {
        let mirrored = Sample.tagged(Sample.one, hasChecksum ? "\"mirror\"" : "\"one\"")
        try await MirrorScene.with([Sample.dying(Sample.one), Sample.dying(mirrored, after: 50_000)]) { scene in
            let options = try scene.options { if hasChecksum { $0.checksum = try Sample.sha256(Sample.one) } }
            let first = try await scene.run(options)
            #expect(first.error?.resumableByteCount == 150_000, "\(first)")
            let bytes = try #require(scene.names.first { $0.hasSuffix(".martlet-record") })
            #expect(!bytes.isEmpty)
            scene.ranges[0].play(Sample.dead(404))
            scene.ranges[1].play(RangeBehavior(mirrored))
            let second = try await scene.run(options)
            #expect(scene.isFile(Sample.one), "\(second)")
            #expect(try second.result.get().resumedByteCount == 150_000)
            let request = try #require(scene.ranges[1].requests.first)
            #expect(request.range == "bytes=150000-299999")
            #expect(request.ifRange == mirrored.entityTag)
        }
    }

    @Test("A run without mirrors is continued with mirrors, and the reverse", arguments: [false, true])
    func resumedOtherwise(removesMirrors: Bool) async throws {
        try await MirrorScene.with([Sample.dying(Sample.one), Sample.dying(Sample.one, after: 50_000)]) { scene in
            var (first, second) = (try scene.options(), try scene.options())
            if removesMirrors { second.mirrors = [] } else { first.mirrors = [] }
            let run = try await scene.run(first)
            #expect(run.error?.resumableByteCount == (removesMirrors ? 150_000 : 100_000), "\(run)")
            scene.ranges[removesMirrors ? 0 : 1].play(RangeBehavior(Sample.one))
            let last = try await scene.run(second)
            #expect(scene.isFile(Sample.one), "\(last)")
            #expect(last.restarts.isEmpty)
        }
    }

    @Test("Bytes of several servers that only the checksum would have verified are not reused without it")
    func resumedWithoutChecksum() async throws {
        let mirror = Sample.dying(Sample.other, after: 50_000)
        try await MirrorScene.with([Sample.dying(Sample.one), mirror]) { scene in
            let first = try await scene.run(try scene.options { $0.checksum = try Sample.sha256(Sample.one) })
            #expect(first.error?.resumableByteCount == 150_000, "\(first)")
            scene.ranges[0].play(RangeBehavior(Sample.one))
            let second = try await scene.run(try scene.options { $0.mirrors = [] })
            #expect(scene.isFile(Sample.one), "\(second)")
            #expect(second.restarts == [.notResumable])
        }
    }

    @Test("Cancellation ends the requests to all URLs, and keeps the bytes")
    func cancelled() async throws {
        let large = RangeVersion(12 << 20, entityTag: "\"large\"")
        let behaviors = (0...1).map { RangeBehavior(large, acts: [.hold(request: 1, after: 500_000, "\($0)")]) }
        try await MirrorScene.with(behaviors) { scene in
            let download = try scene.session.startDownload(
                try scene.urls[0], to: .file(scene.path), options: try scene.options { $0.segments = 2 })
            let areUsed = await eventually { scene.ranges.allSatisfy { $0.sentByteCount >= 500_000 } }
            #expect(areUsed)
            await download.pause()
            #expect(download.state == .paused)
            // A held response notices the closed connection only when it sends more.
            for range in scene.ranges { range.release() }
            for origin in scene.origins { try await origin.recorder.waitForOpenConnections(atMost: 0) }
            #expect(scene.names.count == 2)
            await download.cancel()
            #expect(scene.names.isEmpty)
        }
    }

    @Test("Credentials are not sent to mirrors on other origins", arguments: [false, true])
    func credentials(sendsCrossOrigin: Bool) async throws {
        try await MirrorScene.with([Sample.dying(Sample.one), RangeBehavior(Sample.one)]) { scene in
            let secret = try #require(HTTPField.Name("X-Api-Key"))
            let run = try await scene.run(
                try scene.options {
                    $0.headers = ["Authorization": "Bearer secret", "Cookie": "a=b", "X-Trace": "1"]
                    $0.headers[secret] = "secret"
                    $0.secretFields = [secret]
                    $0.request.authentication = .init(credentials: .basic(user: "me", password: "secret"))
                    var redirects = scene.session.configuration.redirects
                    redirects.sendsCredentialsCrossOrigin = sendsCrossOrigin
                    $0.request.redirects = redirects
                })
            #expect(scene.isFile(Sample.one), "\(run)")
            let own = try #require(scene.ranges[0].requests.first)
            #expect(own.fields["Authorization"] != nil && own.fields["X-Api-Key"] != nil)
            let request = try #require(scene.ranges[1].requests.first)
            for name in ["Authorization", "Cookie", "X-Api-Key"] { #expect(request.fields[name] == nil, "\(name)") }
            #expect(request.fields["X-Trace"] == "1")
        }
    }

    @Test("Whatever the servers do, a file is one version", arguments: Array(0..<24 as Range<UInt64>))
    func storm(_ seed: UInt64) async throws {
        var random = MartletTesting.SeededGenerator(seed: seed)
        let hasChecksum = Bool.random(using: &random)
        let behaviors = (0..<3).map { _ in
            let version = [Sample.one, Sample.one, Sample.other, Sample.longer].randomElement(using: &random)!
            let tag = [version.entityTag, "\"x\"", nil].randomElement(using: &random)!
            // An equal tag for another file would be an error of the server.
            let own = version != Sample.one && tag == "\"x\"" ? version.entityTag : tag
            var behavior = RangeBehavior(Sample.tagged(version, own))
            behavior.ranges = [.served, .served, .ignored, .ignoredWithIfRange].randomElement(using: &random)!
            behavior.heedsIfRange = Bool.random(using: &random)
            behavior.pace = RangePace(Int.random(in: 500_000...4_000_000, using: &random))
            for number in 1...3 where Bool.random(using: &random) {
                let response = OriginResponse(Bool.random(using: &random) ? 404 : 503)
                behavior.acts.append(
                    Bool.random(using: &random)
                        ? .cut(request: number, after: .random(in: 0...200_000, using: &random))
                        : .answer(from: number, through: number + 1, response))
            }
            return behavior
        }
        try await MirrorScene.with(behaviors) { scene in
            let run = try await scene.run(
                try scene.options {
                    if hasChecksum { $0.checksum = try Sample.sha256(Sample.one) }
                    $0.takeoverThreshold = .zero
                })
            if case .success = run.result {
                let files = hasChecksum ? [Sample.one] : [Sample.one, Sample.other, Sample.longer]
                #expect(files.contains { scene.isFile($0) }, "a mixed file: \(run)")
                #expect(scene.names == ["file.bin"])
            } else {
                #expect(run.error != nil, "\(run)")
                #expect(!scene.names.contains("file.bin"))
            }
        }
    }

    @Test("A record with the files of several servers survives writing, and one of a single server has the old format")
    func records() throws {
        var strong = Representation()
        (strong.lastModified, strong.isLastModifiedStrong) = ("Sun, 06 Nov 1994 08:49:37 GMT", true)
        var record = ResumeRecord(
            url: "http://a.example/f", representation: strong, total: 10, written: RangeSet([1..<5 as Range<UInt64>]),
            isUnproven: true, generation: 2, digests: [], modified: nil, owner: 7)
        #expect(record.bytes[4...5] == [1, 0])
        #expect(try ResumeRecord.decode(record.bytes) == record)
        record.sources = ["http://b.example/f", "http://a.example/f"].map { .init(url: $0, representation: strong) }
        #expect(record.bytes[4...5] == [2, 0])
        #expect(try ResumeRecord.decode(record.bytes) == record)
        for count in 0..<record.bytes.count {
            #expect(throws: RecordEnvelope.FormatError.self) {
                try ResumeRecord.decode(Array(record.bytes.prefix(count)))
            }
        }
    }

    private func base64(_ bytes: [UInt8]) -> String { Data(bytes).base64EncodedString() }
}
