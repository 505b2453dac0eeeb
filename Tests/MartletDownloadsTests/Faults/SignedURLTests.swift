import Martlet
import MartletTesting
import MartletTestSupport
import Testing

@testable import MartletDownloads

@Suite("Signed URLs, and URLs that differ in their query")
struct SignedURLTests {
    @Test(
        "Signature parameters are ignored in the comparison of URLs, and nothing else",
        arguments: [
            ("http://h/f", "http://h/f"), ("http://h/f?", "http://h/f?"),
            ("http://h/f?id=1&x", "http://h/f?id=1&x"),
            ("http://h/f?id=1&X-Amz-Signature=ab&X-Amz-Date=1", "http://h/f?id=1"),
            ("http://h/f?X-Goog-Signature=ab&generation=5", "http://h/f?generation=5"),
            ("http://h/f?Expires=1&Signature=a&Key-Pair-Id=k&Policy=p&v=2", "http://h/f?v=2"),
            ("http://h/f?sv=2020&se=x&sr=b&sp=r&sig=ab&snapshot=1", "http://h/f?snapshot=1"),
            // Short names have other meanings elsewhere.
            ("http://h/f?sr=b&se=x&sp=3", "http://h/f?sr=b&se=x&sp=3"),
            ("http://h/f?a=b?c&token=1", "http://h/f?a=b?c&token=1"),
            ("http://h/f?X-Amz-Signature=ab", "http://h/f"),
            ("http://h/f?expires=1&signature=2", "http://h/f?expires=1&signature=2"),
        ])
    func unsigned(_ row: (url: String, expected: String)) {
        #expect(SignedURL.unsigned(row.url) == row.expected)
    }

    @Test("Bytes of one query are not used for another, even with the same validators")
    func otherQuery() async throws {
        let conduct = RangeBehavior(Samples.one, acts: [.cut(request: 1, after: Samples.cut)])
        try await RangeScene.with(conduct) { scene in
            let first = try await scene.run(
                RangeScene.options { $0.retry.maximumRetries = 0 }, from: scene.origin.url("/get?id=a"))
            #expect(first.error?.resumableByteCount == Samples.cut, "\(first.log)")
            let second = try await scene.run(from: scene.origin.url("/get?id=b"))
            try await scene.expectOrder(after: second, versions: [Samples.one])
            #expect(second.value?.resumedByteCount == 0, "\(second.log)")
        }
    }

    /// Checks that the bytes of the first run are still stored, and that a run of its URL resumes from them.
    private func expectKept(_ scene: RangeScene, _ options: DownloadOptions, from url: String) async throws {
        #expect(try scene.directory.parts().count == 2)
        scene.ranges.play(RangeBehavior(Samples.one))
        let run = try await scene.run(options, from: url)
        #expect(run.value?.resumedByteCount == Samples.cut, "\(run.log)")
        try await scene.expectOrder(after: run, versions: [Samples.one])
    }

    @Test("A run of another URL that fails before its first byte keeps the stored bytes")
    func otherQueryFails() async throws {
        let acts: [RangeResponseOverride] = [
            .answer(from: 1, .text("no\n", status: 403)), .answer(from: 1, .text("no\n", status: 404)),
            // The head arrives, and no byte of the body.
            .always { $0.fault = OriginFault(.close, afterBodyBytes: 0) },
        ]
        for act in acts {
            try await RangeScene.with(Samples.cutOnce()) { scene in
                let options = RangeScene.options { $0.retry.maximumRetries = 0 }
                let url = scene.origin.url("/get?token=old")
                _ = try await scene.run(options, from: url)
                scene.ranges.play(RangeBehavior(Samples.one, acts: [act]))
                let failed = try await scene.run(options, from: scene.origin.url("/get?token=new"))
                #expect(failed.error != nil && failed.error?.resumableByteCount == nil, "\(failed.log)")
                try await scene.expectOrder(after: failed, versions: [Samples.one])
                try await expectKept(scene, options, from: url)
            }
        }
    }

    @Test(
        "A download of another URL that is cancelled before its first byte keeps the stored bytes",
        arguments: [false, true])
    func otherQueryCancelled(byTask: Bool) async throws {
        try await RangeScene.with(Samples.cutOnce()) { scene in
            let options = RangeScene.options { $0.retry.maximumRetries = 0 }
            let url = scene.origin.url("/get?token=old")
            _ = try await scene.run(options, from: url)
            scene.ranges.play(RangeBehavior(Samples.one, acts: [.hold(request: 1, after: 0, "asked")]))
            let other = scene.origin.url("/get?token=new")
            if byTask {
                let task = Task { try await scene.session.download(other, to: scene.path, options: options) }
                try await scene.ranges.signals.wait(for: "asked")
                task.cancel()
                await #expect(throws: CancellationError.self) { try await task.value }
            } else {
                let download = try scene.session.startDownload(other, to: .file(scene.path), options: options)
                try await scene.ranges.signals.wait(for: "asked")
                await download.cancel()
            }
            #expect(await eventually { scene.directory.openFiles().isEmpty })
            try await expectKept(scene, options, from: url)
        }
    }

    @Test("A failed run whose options do not allow to resume keeps the stored bytes")
    func otherOptions() async throws {
        try await RangeScene.with(Samples.cutOnce(Samples.bare(Samples.one))) { scene in
            var options = RangeScene.options { $0.retry.maximumRetries = 0 }
            options.resumption = .unverified
            let first = try await scene.run(options)
            #expect(first.error?.resumableByteCount == Samples.cut, "\(first.log)")
            scene.ranges.play(
                RangeBehavior(Samples.bare(Samples.one), acts: [.answer(from: 1, .text("no\n", status: 404))]))
            options.resumption = .automatic
            let failed = try await scene.run(options)
            #expect(failed.error?.resumableByteCount == Samples.cut, "\(failed.log)")
            scene.ranges.play(RangeBehavior(Samples.bare(Samples.one)))
            options.resumption = .unverified
            let last = try await scene.run(options)
            #expect(last.value?.resumedByteCount == Samples.cut, "\(last.log)")
        }
    }

    @Test("Bytes stored under one signature are used under the next")
    func otherSignature() async throws {
        let conduct = RangeBehavior(Samples.one, acts: [.cut(request: 1, after: Samples.cut)])
        try await RangeScene.with(conduct) { scene in
            let first = try await scene.run(
                RangeScene.options { $0.retry.maximumRetries = 0 },
                from: scene.origin.url("/get?id=a&X-Amz-Date=1&X-Amz-Signature=a"))
            #expect(first.error?.resumableByteCount == Samples.cut, "\(first.log)")
            let second = try await scene.run(
                from: scene.origin.url("/get?id=a&X-Amz-Date=2&X-Amz-Signature=b"))
            try await scene.expectOrder(after: second, versions: [Samples.one])
            #expect(second.value?.resumedByteCount == Samples.cut, "\(second.log)")
        }
    }

    @Test("Several files of one path with different queries can be downloaded to one directory concurrently")
    func manyQueries() async throws {
        try await RangeScene.with(RangeBehavior(Samples.one)) { scene in
            let directory = scene.path.removingLastComponent()
            try await withThrowingTaskGroup(of: DownloadResult.self) { group in
                for number in 1...5 {
                    let url = scene.origin.url("/get?id=\(number)")
                    group.addTask {
                        try await scene.session.download(
                            url, to: .directory(directory),
                            options: RangeScene.options { $0.collision = .rename })
                    }
                }
                var names: Set<String> = []
                for try await result in group {
                    #expect(result.byteCount == Samples.one.byteCount)
                    names.insert(result.path.string)
                }
                #expect(names.count == 5)
            }
        }
    }

    @Test("A record without a part file is removed when its target is found to be complete")
    func orphan() async throws {
        try await RangeScene.with(RangeBehavior(Samples.one)) { scene in
            try scene.directory.write([1], to: RangeScene.name)
            for suffix in [".martlet-record", ".martlet-record-", ".martlet-part-"] {
                try scene.directory.write([2], to: RangeScene.name + suffix)
            }
            let error = await #expect(throws: HTTPError.self) {
                try await scene.session.download(scene.url, to: scene.path)
            }
            #expect(error?.code == .fileExists)
            #expect(try scene.directory.names() == [RangeScene.name])
            // With a part file it can be resumed, next to a file of the same name.
            for suffix in [".martlet-record", ".martlet-part"] {
                try scene.directory.write([2], to: RangeScene.name + suffix)
            }
            await #expect(throws: HTTPError.self) {
                try await scene.session.download(scene.url, to: scene.path)
            }
            #expect(try scene.directory.names().count == 3)
        }
    }
}
