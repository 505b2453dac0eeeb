import Martlet
import MartletTesting
import MartletTestSupport
import MartletTransport
import Synchronization
import Testing

@Suite("One body for several sinks")
struct TeeTests {
    private struct Rejection: Error, Equatable {}

    /// A sink that records its calls.
    private final class Notes: BodySink {
        let told = Mutex<[String]>([])
        let failsAt: String?

        init(failsAt: String? = nil) {
            self.failsAt = failsAt
        }

        private func note(_ text: String) throws {
            told.withLock { if $0.last != text { $0.append(text) } }
            if text == failsAt { throw Rejection() }
        }

        func write(_ piece: [UInt8]) async throws { try note("write") }
        func finish() async throws { try note("finish") }
        func abandon() async { told.withLock { $0.append("abandon") } }
        var all: [String] { told.withLock { $0 } }
    }

    /// A file that is completed only after the task is cancelled.
    private struct LateFile: BodySink {
        let file: FileSink
        let signals: OriginSignals

        func write(_ piece: [UInt8]) async throws { try await file.write(piece) }

        func finish() async throws {
            signals.raise("finishing")
            _ = await OneShot<Void>().waitUnlessCancelled()
            try await file.finish()
        }

        func abandon() async { await file.abandon() }
    }

    @Test("A body goes to a file, a closure, a digest and a sequence at the same time")
    func all() async throws {
        let directory = try TemporaryDirectory()
        let bytes = TestPattern.bytes(from: 0, count: 1_000_000)
        try await TestOrigin.withOrigin(handler: .fixed(.pattern(1_000_000))) { origin async throws in
            let seen = Mutex<[UInt8]>([])
            let (digest, sequence) = (DigestSink(.sha256), SequenceSink())
            async let read = sequence.reduce(into: [UInt8]()) { $0 += $1 }
            let results = try await HTTPSession.own().stream(try HTTPRequest(.get, origin)) { _, body in
                try await body.tee(to: [
                    FileSink(directory.path("one")), FileSink(directory.path("two")),
                    ClosureSink { piece in seen.withLock { $0 += piece } }, digest, sequence,
                ])
            }
            #expect(results.allSatisfy { $0.isFinished && $0.byteCount == 1_000_000 })
            #expect(results.count == 5)
            #expect(try directory.bytes(of: "one") == bytes)
            #expect(try directory.bytes(of: "two") == bytes)
            #expect(seen.withLock { $0 } == bytes)
            #expect(try await read == bytes)
            let file = DigestSink(.sha256)
            try await file.write(bytes)
            try await file.finish()
            #expect(await digest.hexadecimal == file.hexadecimal)
            #expect(await digest.bytes?.count == 32)
        }
    }

    @Test("The digest of a known text is correct")
    func digest() async throws {
        let sink = DigestSink(.sha256)
        #expect(await sink.bytes == nil)
        try await sink.write(Array("abc".utf8))
        try await sink.finish()
        #expect(
            await sink.hexadecimal == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    }

    @Test("The slowest sink sets the pace and stops the sender")
    func backPressure() async throws {
        let size = UInt64(try KernelBuffers.most()) + 32 << 20
        try await TestOrigin.withOrigin(handler: .fixed(.pattern(size))) { origin async throws in
            let slow = SequenceSink()
            let count = Mutex(0)
            let request = try HTTPRequest(.get, origin)
            let tee = Task {
                try await HTTPSession.own().stream(request) { _, body in
                    try await body.tee(to: [
                        ClosureSink { piece in count.withLock { $0 += piece.count } }, slow,
                    ])
                }
            }
            #expect(await eventually { count.withLock { $0 } > 0 })
            let sent = await settled { origin.recorder.counts.bytesSent }
            #expect(sent < size)
            // The fast sink has one piece more than the slow one, which has none.
            #expect(count.withLock { $0 } <= 256 << 10)
            var offset: UInt64 = 0
            for try await piece in slow {
                #expect(TestPattern.firstMismatch(in: piece, at: offset) == nil)
                offset += UInt64(piece.count)
            }
            #expect(offset == size)
            #expect(try await tee.value.map(\.byteCount) == [size, size])
        }
    }

    @Test("A sink that fails does not stop the others")
    func failure() async throws {
        let directory = try TemporaryDirectory()
        try directory.write([1], to: "taken")
        try await TestOrigin.withOrigin(handler: .fixed(.pattern(500_000))) { origin async throws in
            let (one, last) = (Notes(failsAt: "write"), Notes(failsAt: "finish"))
            let results = try await HTTPSession.own().stream(try HTTPRequest(.get, origin)) { _, body in
                try await body.tee(to: [
                    one, FileSink(directory.path("taken")), FileSink(directory.path("file")), last,
                ])
            }
            #expect(results[0].error is Rejection)
            #expect(results[0].byteCount == 0)
            #expect((results[1].error as? HTTPError)?.code == .fileExists)
            #expect(results[2].isFinished)
            #expect(results[3].error is Rejection)
            #expect(results[3].byteCount == 500_000)
            #expect(one.all == ["write", "abandon"])
            #expect(last.all == ["write", "finish", "abandon"])
            #expect(try directory.bytes(of: "file").count == 500_000)
            #expect(try directory.bytes(of: "taken") == [1])
            #expect(try directory.contents().sorted() == ["file", "taken"])
        }
    }

    @Test("With the option set, the first failure stops all sinks and leaves no file", arguments: ["write", "finish"])
    func stopAll(_ moment: String) async throws {
        let directory = try TemporaryDirectory()
        try await TestOrigin.withOrigin(handler: .fixed(.pattern(500_000))) { origin async throws in
            let other = Notes()
            await #expect(throws: Rejection.self) {
                try await HTTPSession.own().stream(try HTTPRequest(.get, origin)) { _, body in
                    try await body.tee(
                        to: [Notes(failsAt: moment), FileSink(directory.path("file")), other],
                        onFailure: .stopAll)
                }
            }
            #expect(other.all == ["write", "abandon"])
            #expect(try directory.contents().isEmpty)
        }
    }

    @Test("After all sinks have failed the body is not read further")
    func noneLeft() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.pattern(1 << 40))) { origin async throws in
            let session = HTTPSession.own()
            let results = try await session.stream(try HTTPRequest(.get, origin)) { _, body in
                try await body.tee(to: [Notes(failsAt: "write"), Notes(failsAt: "write")])
            }
            #expect(results.allSatisfy { $0.error is Rejection })
            #expect(session.poolStatus.leased == 0)
        }
    }

    @Test("A body that is cut leaves no file, and every sink is notified")
    func truncated() async throws {
        let directory = try TemporaryDirectory()
        let script = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234"), .close)
        try await TestOrigin.withOrigin(scripts: script) { origin async throws in
            let (notes, sequence) = (Notes(), SequenceSink())
            async let read = sequence.reduce(into: [UInt8]()) { $0 += $1 }
            let error = try #require(
                await #expect(throws: HTTPError.self) {
                    try await HTTPSession.own().stream(try HTTPRequest(.get, origin)) { _, body in
                        try await body.tee(to: [FileSink(directory.path("file")), notes, sequence])
                    }
                })
            #expect(error.code == .truncated)
            #expect(notes.all == ["write", "abandon"])
            #expect(try directory.contents().isEmpty)
            do {
                _ = try await read
                Issue.record("a body of half its length was taken for whole")
            } catch {
                #expect(error is CancellationError)
            }
        }
    }

    @Test("Cancelling ends a tee with a blocked sink and leaves no file")
    func cancel() async throws {
        let directory = try TemporaryDirectory()
        try await TestOrigin.withOrigin(handler: .fixed(.pattern(1 << 40))) { origin async throws in
            let (notes, deaf) = (Notes(), SequenceSink())
            let request = try HTTPRequest(.get, origin)
            let tee = Task {
                try await HTTPSession.own().stream(request) { _, body in
                    try await body.tee(to: [FileSink(directory.path("file")), notes, deaf])
                }
            }
            #expect(await eventually { !notes.all.isEmpty })
            tee.cancel()
            await #expect(throws: CancellationError.self) { try await tee.value }
            #expect(notes.all.last == "abandon")
            #expect(try directory.contents().isEmpty)
        }
    }

    @Test("A tee that is cancelled while its sinks finish throws the cancellation", arguments: [false, true])
    func cancelledAtTheEnd(hasOthers: Bool) async throws {
        let directory = try TemporaryDirectory()
        try await TestOrigin.withOrigin(handler: .fixed(.pattern(500_000))) { origin async throws in
            var sinks: [any BodySink] = [LateFile(file: FileSink(directory.path("file")), signals: origin.signals)]
            if hasOthers { sinks.append(DigestSink(.sha256)) }
            let tee = Task { [sinks, url = origin.url()] in
                try await HTTPSession.own().open(url).body.tee(to: sinks)
            }
            try await origin.signals.wait(for: "finishing")
            tee.cancel()
            await #expect(throws: CancellationError.self) { try await tee.value }
            #expect(try directory.contents().isEmpty)
        }
    }

    @Test("A reader that leaves counts as a failed sink")
    func readerLeaves() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.pattern(2_000_000))) { origin async throws in
            let sequence = SequenceSink()
            let reader = Task {
                for try await _ in sequence { break }
                sequence.cancel()
            }
            let results = try await HTTPSession.own().stream(try HTTPRequest(.get, origin)) { _, body in
                try await body.tee(to: [sequence, ClosureSink { _ in }])
            }
            try await reader.value
            #expect(results[0].error is CancellationError)
            #expect(results[1].isFinished)
        }
    }

    @Test("An empty body creates an empty file and the digest of no bytes")
    func empty() async throws {
        let directory = try TemporaryDirectory()
        try await TestOrigin.withOrigin(handler: .fixed(OriginResponse(200))) { origin async throws in
            let digest = DigestSink(.md5)
            let results = try await HTTPSession.own().stream(try HTTPRequest(.get, origin)) { _, body in
                try await body.tee(to: [FileSink(directory.path("file")), digest])
            }
            #expect(results.allSatisfy { $0.isFinished && $0.byteCount == 0 })
            #expect(try directory.bytes(of: "file").isEmpty)
            #expect(await digest.hexadecimal == "d41d8cd98f00b204e9800998ecf8427e")
        }
    }

    @Test("A piece that was read counts as written even if the reader then cancels")
    func takenThenCancelled() async throws {
        for _ in 1...100 {
            let sink = SequenceSink()
            async let written: Void = sink.write([1, 2, 3])
            var iterator = sink.makeAsyncIterator()
            #expect(try await iterator.next() == [1, 2, 3])
            sink.cancel()
            try await written
            await #expect(throws: CancellationError.self) { try await sink.write([4]) }
        }
    }
}
