import Logging
import Martlet
import MartletTesting
import Synchronization
import Testing

@Suite("Logging of calls", .timeLimit(.minutes(20)))
struct CallLogTests {
    private struct Line: Sendable {
        let level: Logger.Level
        let message: String
        let values: [String: String]
    }

    private final class Journal: Sendable {
        private let state = Mutex<[Line]>([])
        var lines: [Line] { state.withLock { $0 } }

        func append(_ line: Line) { state.withLock { $0.append(line) } }
    }

    private struct Handler: LogHandler {
        let journal: Journal
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            journal.append(
                Line(
                    level: event.level, message: "\(event.message)",
                    values: (event.metadata ?? [:]).mapValues { "\($0)" }))
        }
    }

    private func lines(
        _ handler: OriginHandler, _ change: @escaping (inout SessionConfiguration) -> Void = { _ in },
        _ call: @escaping (HTTPSession, TestOrigin) async throws -> Void
    ) async throws -> [Line] {
        let journal = Journal()
        try await TestOrigin.withOrigin(handler: handler) { origin in
            let session = HTTPSession.own {
                $0.logger = Logger(label: "test") { _ in Handler(journal: journal) }
                $0.logger.logLevel = .trace
                change(&$0)
            }
            try await call(session, origin)
        }
        return journal.lines
    }

    @Test("A response is logged at debug level with the request and the status")
    func success() async throws {
        let lines = try await lines(.fixed(.text("x"))) {
            for _ in 1...2 { _ = try await $0.get($1.url("/a?limit=2&token=hunter2#x")) }
        }
        #expect(lines.map(\.level) == [.debug, .debug])
        let first = try #require(lines.first)
        #expect(first.values["method"] == "GET" && first.values["path"] == "/a?limit=2&token=***")
        #expect(first.values["status"] == "200" && first.values["source"] == "network")
        #expect(first.values["attempt"] == "1" && first.values["error"] == nil && first.values["cache"] == nil)
        #expect(first.values["duration"]?.hasSuffix("s") == true)
        #expect(Set(lines.compactMap { $0.values["call"] }).count == 2, "each call has a number of its own")
    }

    @Test("A response of a session with a cache is logged with the decision of the cache")
    func cacheStatus() async throws {
        let response = OriginResponse(headers: ["Cache-Control": "max-age=600"], body: .text("x"))
        let lines = try await lines(.fixed(response), { $0.cache = .memoryOnly() }) {
            for _ in 1...2 { _ = try await $0.get($1.url("/a")) }
        }
        #expect(lines.count == 2)
        #expect(lines.first?.values["cache"]?.contains("fwd=") == true)
        #expect(lines.last?.values["cache"]?.contains("hit") == true && lines.last?.values["source"] == "cache")
    }

    @Test(
        "Retries are logged at notice and the failure at warning, with one call number and no false status"
    )
    func retries() async throws {
        let lines = try await lines(
            .fault(OriginFault(.reset)),
            { $0.retry = .transient(maximumAttempts: 3, backoff: .constant(.zero)) }
        ) { session, origin in
            await #expect(throws: HTTPError.self) { try await session.get(origin.url("/a")) }
        }
        #expect(lines.map(\.level) == [.notice, .notice, .warning])
        #expect(lines.compactMap { $0.values["attempt"] } == ["1", "2", "3"])
        #expect(lines.allSatisfy { $0.values["status"] == nil && $0.values["error"] != nil })
        #expect(Set(lines.map { $0.values["call"] }).count == 1)
    }

    @Test("A retry after a status is logged with the status, and a redirect is logged at debug level")
    func statuses() async throws {
        let count = Counter()
        let lines = try await lines(
            OriginHandler { request in
                if request.path == "/a" { return OriginResponse(302, headers: ["Location": "/b"]) }
                count.add()
                return count.count == 1 ? OriginResponse(503) : .text("x")
            }, { $0.retry = .transient(maximumAttempts: 3, backoff: .constant(.zero)) }
        ) { _ = try await $0.get($1.url("/a")) }
        #expect(lines.map(\.level) == [.debug, .notice, .debug])
        #expect(lines.map { $0.values["status"] } == ["302", "503", "200"])
        #expect(lines.map { $0.values["path"] } == ["/a", "/b", "/b"])
        #expect(lines.map { $0.values["attempt"] } == ["1", "2", "3"])
    }

    @Test("A cancelled call is logged at debug level")
    func cancelled() async throws {
        let lines = try await lines(.fixed(.text("x"))) { session, origin in
            let task = Task {
                unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
                _ = try await session.get(origin.url("/a"))
            }
            await #expect(throws: CancellationError.self) { try await task.value }
        }
        #expect(lines.map(\.level) == [.debug] && lines.first?.message == "call failed")
    }
}
