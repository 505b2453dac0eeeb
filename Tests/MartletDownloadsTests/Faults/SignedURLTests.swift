import Martlet
import MartletTesting
import MartletTestSupport
import Testing

@testable import MartletDownloads

@Suite("URLs that are signed, and those that name other files")
struct SignedURLTests {
    @Test(
        "What signs a URL is left out, and nothing else",
        arguments: [
            ("http://h/f", "http://h/f"), ("http://h/f?", "http://h/f?"),
            ("http://h/f?id=1&x", "http://h/f?id=1&x"),
            ("http://h/f?id=1&X-Amz-Signature=ab&X-Amz-Date=1", "http://h/f?id=1"),
            ("http://h/f?X-Goog-Signature=ab&generation=5", "http://h/f?generation=5"),
            ("http://h/f?Expires=1&Signature=a&Key-Pair-Id=k&Policy=p&v=2", "http://h/f?v=2"),
            ("http://h/f?sv=2020&se=x&sr=b&sp=r&sig=ab&snapshot=1", "http://h/f?snapshot=1"),
            // Short names mean something else elsewhere.
            ("http://h/f?sr=b&se=x&sp=3", "http://h/f?sr=b&se=x&sp=3"),
            ("http://h/f?a=b?c&token=1", "http://h/f?a=b?c&token=1"),
            ("http://h/f?X-Amz-Signature=ab", "http://h/f"),
            ("http://h/f?expires=1&signature=2", "http://h/f?expires=1&signature=2"),
        ])
    func unsigned(_ row: (url: String, expected: String)) {
        #expect(SignedURL.unsigned(row.url) == row.expected)
    }

    @Test("What came of one query counts for no other, whatever validators they share")
    func otherQuery() async throws {
        let conduct = RangeBehavior(Samples.one, acts: [.cut(request: 1, after: Samples.cut)])
        try await RangeScene.with(conduct) { scene in
            let first = try await scene.run(
                RangeScene.options { $0.retry.maximumAttempts = 0 }, from: scene.origin.url("/get?id=a"))
            #expect(first.error?.resumableByteCount == Samples.cut, "\(first.log)")
            let second = try await scene.run(from: scene.origin.url("/get?id=b"))
            try await scene.expectOrder(after: second, versions: [Samples.one])
            #expect(second.value?.resumedByteCount == 0, "\(second.log)")
        }
    }

    @Test("What came under one signature counts under the next")
    func otherSignature() async throws {
        let conduct = RangeBehavior(Samples.one, acts: [.cut(request: 1, after: Samples.cut)])
        try await RangeScene.with(conduct) { scene in
            let first = try await scene.run(
                RangeScene.options { $0.retry.maximumAttempts = 0 },
                from: scene.origin.url("/get?id=a&X-Amz-Date=1&X-Amz-Signature=a"))
            #expect(first.error?.resumableByteCount == Samples.cut, "\(first.log)")
            let second = try await scene.run(
                from: scene.origin.url("/get?id=a&X-Amz-Date=2&X-Amz-Signature=b"))
            try await scene.expectOrder(after: second, versions: [Samples.one])
            #expect(second.value?.resumedByteCount == Samples.cut, "\(second.log)")
        }
    }

    @Test("Several files of one path, told apart by their queries, come into one folder at once")
    func manyQueries() async throws {
        try await RangeScene.with(RangeBehavior(Samples.one)) { scene in
            let folder = scene.path.removingLastComponent()
            try await withThrowingTaskGroup(of: DownloadResult.self) { group in
                for number in 1...5 {
                    let url = scene.origin.url("/get?id=\(number)")
                    group.addTask {
                        try await scene.session.download(
                            url, to: .directory(folder),
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

    @Test("A record without its bytes goes where its file is found to be complete")
    func orphan() async throws {
        try await RangeScene.with(RangeBehavior(Samples.one)) { scene in
            try scene.folder.write([1], to: RangeScene.name)
            for suffix in [".martlet-record", ".martlet-record-", ".martlet-part-"] {
                try scene.folder.write([2], to: RangeScene.name + suffix)
            }
            let error = await #expect(throws: HTTPError.self) {
                try await scene.session.download(scene.url, to: scene.path)
            }
            #expect(error?.code == .fileExists)
            #expect(try scene.folder.names() == [RangeScene.name])
            // With its bytes it is what another run may go on from, beside a file of the same name.
            for suffix in [".martlet-record", ".martlet-part"] {
                try scene.folder.write([2], to: RangeScene.name + suffix)
            }
            await #expect(throws: HTTPError.self) {
                try await scene.session.download(scene.url, to: scene.path)
            }
            #expect(try scene.folder.names().count == 3)
        }
    }
}
