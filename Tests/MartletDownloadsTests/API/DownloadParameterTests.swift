import Foundation
import Martlet
import MartletTesting
import MartletTestSupport
import SystemPackage
import Testing

@Suite("One function for downloads, whatever its parameters", .timeLimit(.minutes(20)))
struct DownloadParameterTests {
    @Test("A target is printed as its path, and decodes what earlier versions encoded")
    func target() throws {
        let rows: [(DownloadTarget, String)] = [
            (.file("/a/b"), "/a/b"), (.directory("/a"), "/a/"), (.directory("/"), "/"), (.directory(""), "./"),
        ]
        for (target, text) in rows { #expect("\(target)" == text) }
        let data = try JSONEncoder().encode(DownloadTarget.file("/a/b"))
        #expect(String(decoding: data, as: UTF8.self).contains(#""place":"#))
        #expect(try JSONDecoder().decode(DownloadTarget.self, from: data) == .file("/a/b"))
    }

    /// The bits of a combination are overwrites, query, headers, timeout, options and progress.
    @Test("Every combination of parameters resumes an earlier run", arguments: 0..<64, [false, true])
    func resumes(_ combination: Int, ofHost: Bool) async throws {
        try await RangeScene.with(Samples.cutOnce()) { scene in
            let (hasQuery, hasHeaders) = (combination & 2 != 0, combination & 4 != 0)
            let first = try await scene.run(
                RangeScene.options { $0.retry.maximumRetries = 0 }, from: scene.url + (hasQuery ? "?a=1" : ""))
            #expect(first.error?.resumableByteCount == Samples.cut, "\(first.log)")
            scene.ranges.play(RangeBehavior(Samples.one))
            let result: DownloadResult
            if ofHost {
                let api = try scene.session.host(scene.origin.base)
                result = try await api.fetch(combination, RangeScene.name, scene.path)
            } else {
                result = try await scene.session.fetch(combination, scene.url, scene.path)
            }
            #expect(result.resumedByteCount == Samples.cut && result.path == scene.path)
            #expect(try scene.directory.version(of: RangeScene.name, among: [Samples.one]) == 0)
            let sent = try #require(scene.origin.requests.last)
            #expect(sent.query["a"] == (hasQuery ? "1" : nil) && sent.headers["X-A"] == (hasHeaders ? "1" : nil))
        }
    }

    @Test("A directory as the target takes the same parameters, and overwrites replaces an existing file")
    func directory() async throws {
        try await RangeScene.with(RangeBehavior(Samples.one)) { scene in
            try scene.directory.write([1, 2, 3], to: RangeScene.name)
            let error = await #expect(throws: HTTPError.self) {
                try await scene.session.download(scene.url, to: .directory(scene.directory.path), overwrites: false)
            }
            #expect(error?.code == .fileExists)
            let result = try await scene.session.download(
                scene.url, to: .directory(scene.directory.path), overwrites: true, query: ["a": 1],
                headers: ["X-A": "1"], timeout: .seconds(3600))
            #expect(result.path == scene.path)
            #expect(try scene.directory.version(of: RangeScene.name, among: [Samples.one]) == 0)
        }
    }

    @Test("The timeout covers all requests of a download, and a later call resumes what was received")
    func timeout() async throws {
        let held = RangeBehavior(Samples.one, acts: [.hold(request: 1, after: 150_000, "middle")])
        try await RangeScene.with(held) { scene in
            let error = try #require(
                await #expect(throws: HTTPError.self) {
                    try await scene.session.download(
                        scene.url, to: scene.path, timeout: .milliseconds(500), options: RangeScene.options)
                })
            #expect(error.code == .timedOut && error.timeout == .total, "\(error)")
            scene.ranges.release()
            scene.ranges.play(RangeBehavior(Samples.one))
            let result = try await scene.session.download(scene.url, to: scene.path, options: RangeScene.options)
            #expect(result.resumedByteCount == error.resumableByteCount ?? 0)
            #expect(try scene.directory.version(of: RangeScene.name, among: [Samples.one]) == 0)
        }
    }
}

private let q: ParameterValue = ["a": 1]
private let h: HTTPHeaders = ["X-A": "1"]
private let t = Duration.seconds(3600)
private let o = RangeScene.options

/// The calls are written out, because the parameters that a call has decide which function it is.
extension HTTPSession {
    fileprivate nonisolated func fetch(_ n: Int, _ url: String, _ f: FilePath) async throws -> DownloadResult {
        let p: (DownloadProgress) -> Void = { _ in }
        switch n {
        case 0: return try await download(url, to: f)
        case 1: return try await download(url, to: f, overwrites: true)
        case 2: return try await download(url, to: f, query: q)
        case 3: return try await download(url, to: f, overwrites: true, query: q)
        case 4: return try await download(url, to: f, headers: h)
        case 5: return try await download(url, to: f, overwrites: true, headers: h)
        case 6: return try await download(url, to: f, query: q, headers: h)
        case 7: return try await download(url, to: f, overwrites: true, query: q, headers: h)
        case 8: return try await download(url, to: f, timeout: t)
        case 9: return try await download(url, to: f, overwrites: true, timeout: t)
        case 10: return try await download(url, to: f, query: q, timeout: t)
        case 11: return try await download(url, to: f, overwrites: true, query: q, timeout: t)
        case 12: return try await download(url, to: f, headers: h, timeout: t)
        case 13: return try await download(url, to: f, overwrites: true, headers: h, timeout: t)
        case 14: return try await download(url, to: f, query: q, headers: h, timeout: t)
        case 15: return try await download(url, to: f, overwrites: true, query: q, headers: h, timeout: t)
        case 16: return try await download(url, to: f, options: o)
        case 17: return try await download(url, to: f, overwrites: true, options: o)
        case 18: return try await download(url, to: f, query: q, options: o)
        case 19: return try await download(url, to: f, overwrites: true, query: q, options: o)
        case 20: return try await download(url, to: f, headers: h, options: o)
        case 21: return try await download(url, to: f, overwrites: true, headers: h, options: o)
        case 22: return try await download(url, to: f, query: q, headers: h, options: o)
        case 23: return try await download(url, to: f, overwrites: true, query: q, headers: h, options: o)
        case 24: return try await download(url, to: f, timeout: t, options: o)
        case 25: return try await download(url, to: f, overwrites: true, timeout: t, options: o)
        case 26: return try await download(url, to: f, query: q, timeout: t, options: o)
        case 27: return try await download(url, to: f, overwrites: true, query: q, timeout: t, options: o)
        case 28: return try await download(url, to: f, headers: h, timeout: t, options: o)
        case 29: return try await download(url, to: f, overwrites: true, headers: h, timeout: t, options: o)
        case 30: return try await download(url, to: f, query: q, headers: h, timeout: t, options: o)
        case 31: return try await download(url, to: f, overwrites: true, query: q, headers: h, timeout: t, options: o)
        case 32: return try await download(url, to: f, progress: p)
        case 33: return try await download(url, to: f, overwrites: true, progress: p)
        case 34: return try await download(url, to: f, query: q, progress: p)
        case 35: return try await download(url, to: f, overwrites: true, query: q, progress: p)
        case 36: return try await download(url, to: f, headers: h, progress: p)
        case 37: return try await download(url, to: f, overwrites: true, headers: h, progress: p)
        case 38: return try await download(url, to: f, query: q, headers: h, progress: p)
        case 39: return try await download(url, to: f, overwrites: true, query: q, headers: h, progress: p)
        case 40: return try await download(url, to: f, timeout: t, progress: p)
        case 41: return try await download(url, to: f, overwrites: true, timeout: t, progress: p)
        case 42: return try await download(url, to: f, query: q, timeout: t, progress: p)
        case 43: return try await download(url, to: f, overwrites: true, query: q, timeout: t, progress: p)
        case 44: return try await download(url, to: f, headers: h, timeout: t, progress: p)
        case 45: return try await download(url, to: f, overwrites: true, headers: h, timeout: t, progress: p)
        case 46: return try await download(url, to: f, query: q, headers: h, timeout: t, progress: p)
        case 47: return try await download(url, to: f, overwrites: true, query: q, headers: h, timeout: t, progress: p)
        case 48: return try await download(url, to: f, options: o, progress: p)
        case 49: return try await download(url, to: f, overwrites: true, options: o, progress: p)
        case 50: return try await download(url, to: f, query: q, options: o, progress: p)
        case 51: return try await download(url, to: f, overwrites: true, query: q, options: o, progress: p)
        case 52: return try await download(url, to: f, headers: h, options: o, progress: p)
        case 53: return try await download(url, to: f, overwrites: true, headers: h, options: o, progress: p)
        case 54: return try await download(url, to: f, query: q, headers: h, options: o, progress: p)
        case 55: return try await download(url, to: f, overwrites: true, query: q, headers: h, options: o, progress: p)
        case 56: return try await download(url, to: f, timeout: t, options: o, progress: p)
        case 57: return try await download(url, to: f, overwrites: true, timeout: t, options: o, progress: p)
        case 58: return try await download(url, to: f, query: q, timeout: t, options: o, progress: p)
        case 59: return try await download(url, to: f, overwrites: true, query: q, timeout: t, options: o, progress: p)
        case 60: return try await download(url, to: f, headers: h, timeout: t, options: o, progress: p)
        case 61:
            return try await download(
                url, to: f, overwrites: true, headers: h, timeout: t, options: o, progress: p)
        case 62: return try await download(url, to: f, query: q, headers: h, timeout: t, options: o, progress: p)
        default:
            return try await download(
                url, to: f, overwrites: true, query: q, headers: h, timeout: t, options: o, progress: p)
        }
    }
}

extension HTTPHost {
    fileprivate func fetch(_ n: Int, _ url: String, _ f: FilePath) async throws -> DownloadResult {
        let p: (DownloadProgress) -> Void = { _ in }
        switch n {
        case 0: return try await download(url, to: f)
        case 1: return try await download(url, to: f, overwrites: true)
        case 2: return try await download(url, to: f, query: q)
        case 3: return try await download(url, to: f, overwrites: true, query: q)
        case 4: return try await download(url, to: f, headers: h)
        case 5: return try await download(url, to: f, overwrites: true, headers: h)
        case 6: return try await download(url, to: f, query: q, headers: h)
        case 7: return try await download(url, to: f, overwrites: true, query: q, headers: h)
        case 8: return try await download(url, to: f, timeout: t)
        case 9: return try await download(url, to: f, overwrites: true, timeout: t)
        case 10: return try await download(url, to: f, query: q, timeout: t)
        case 11: return try await download(url, to: f, overwrites: true, query: q, timeout: t)
        case 12: return try await download(url, to: f, headers: h, timeout: t)
        case 13: return try await download(url, to: f, overwrites: true, headers: h, timeout: t)
        case 14: return try await download(url, to: f, query: q, headers: h, timeout: t)
        case 15: return try await download(url, to: f, overwrites: true, query: q, headers: h, timeout: t)
        case 16: return try await download(url, to: f, options: o)
        case 17: return try await download(url, to: f, overwrites: true, options: o)
        case 18: return try await download(url, to: f, query: q, options: o)
        case 19: return try await download(url, to: f, overwrites: true, query: q, options: o)
        case 20: return try await download(url, to: f, headers: h, options: o)
        case 21: return try await download(url, to: f, overwrites: true, headers: h, options: o)
        case 22: return try await download(url, to: f, query: q, headers: h, options: o)
        case 23: return try await download(url, to: f, overwrites: true, query: q, headers: h, options: o)
        case 24: return try await download(url, to: f, timeout: t, options: o)
        case 25: return try await download(url, to: f, overwrites: true, timeout: t, options: o)
        case 26: return try await download(url, to: f, query: q, timeout: t, options: o)
        case 27: return try await download(url, to: f, overwrites: true, query: q, timeout: t, options: o)
        case 28: return try await download(url, to: f, headers: h, timeout: t, options: o)
        case 29: return try await download(url, to: f, overwrites: true, headers: h, timeout: t, options: o)
        case 30: return try await download(url, to: f, query: q, headers: h, timeout: t, options: o)
        case 31: return try await download(url, to: f, overwrites: true, query: q, headers: h, timeout: t, options: o)
        case 32: return try await download(url, to: f, progress: p)
        case 33: return try await download(url, to: f, overwrites: true, progress: p)
        case 34: return try await download(url, to: f, query: q, progress: p)
        case 35: return try await download(url, to: f, overwrites: true, query: q, progress: p)
        case 36: return try await download(url, to: f, headers: h, progress: p)
        case 37: return try await download(url, to: f, overwrites: true, headers: h, progress: p)
        case 38: return try await download(url, to: f, query: q, headers: h, progress: p)
        case 39: return try await download(url, to: f, overwrites: true, query: q, headers: h, progress: p)
        case 40: return try await download(url, to: f, timeout: t, progress: p)
        case 41: return try await download(url, to: f, overwrites: true, timeout: t, progress: p)
        case 42: return try await download(url, to: f, query: q, timeout: t, progress: p)
        case 43: return try await download(url, to: f, overwrites: true, query: q, timeout: t, progress: p)
        case 44: return try await download(url, to: f, headers: h, timeout: t, progress: p)
        case 45: return try await download(url, to: f, overwrites: true, headers: h, timeout: t, progress: p)
        case 46: return try await download(url, to: f, query: q, headers: h, timeout: t, progress: p)
        case 47: return try await download(url, to: f, overwrites: true, query: q, headers: h, timeout: t, progress: p)
        case 48: return try await download(url, to: f, options: o, progress: p)
        case 49: return try await download(url, to: f, overwrites: true, options: o, progress: p)
        case 50: return try await download(url, to: f, query: q, options: o, progress: p)
        case 51: return try await download(url, to: f, overwrites: true, query: q, options: o, progress: p)
        case 52: return try await download(url, to: f, headers: h, options: o, progress: p)
        case 53: return try await download(url, to: f, overwrites: true, headers: h, options: o, progress: p)
        case 54: return try await download(url, to: f, query: q, headers: h, options: o, progress: p)
        case 55: return try await download(url, to: f, overwrites: true, query: q, headers: h, options: o, progress: p)
        case 56: return try await download(url, to: f, timeout: t, options: o, progress: p)
        case 57: return try await download(url, to: f, overwrites: true, timeout: t, options: o, progress: p)
        case 58: return try await download(url, to: f, query: q, timeout: t, options: o, progress: p)
        case 59: return try await download(url, to: f, overwrites: true, query: q, timeout: t, options: o, progress: p)
        case 60: return try await download(url, to: f, headers: h, timeout: t, options: o, progress: p)
        case 61:
            return try await download(
                url, to: f, overwrites: true, headers: h, timeout: t, options: o, progress: p)
        case 62: return try await download(url, to: f, query: q, headers: h, timeout: t, options: o, progress: p)
        default:
            return try await download(
                url, to: f, overwrites: true, query: q, headers: h, timeout: t, options: o, progress: p)
        }
    }
}
