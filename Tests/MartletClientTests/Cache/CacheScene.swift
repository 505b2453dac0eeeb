@testable import MartletContent
import FoundationEssentials
import Martlet
import MartletTesting
import MartletTestSupport
import Synchronization
import SystemPackage

@testable import MartletCaching
@testable import MartletCore
@testable import MartletHosts

/// What the suites of the cache share: sessions with one, and answers of an origin.
enum CacheScene {
    /// Fields of an answer that is stale as it comes, and may be served so for ten minutes while it is validated.
    static let staleWhileRevalidate = "max-age=60, stale-while-revalidate=600"
    /// Fields of an answer that is stale as it comes, and may stand in for an error for ten minutes.
    static let staleIfError = "max-age=60, stale-if-error=600"

    /// A session with a cache in memory alone, or in a folder with memory before it.
    static func session(
        _ folder: TemporaryFolder? = nil, options: ResponseCache.Options = .withoutPressure,
        memory: ByteCount = .mebibytes(32), _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> (HTTPSession, ResponseCache) {
        let cache: ResponseCache =
            if let folder {
                try .at(FilePath(folder.path).appending("cache"), memory: memory, options: options)
            } else {
                .memoryOnly(memory, options: options)
            }
        let session = HTTPSession.own { configuration in
            configuration.cache = cache
            change(&configuration)
        }
        return (session, cache)
    }

    /// An answer with a text, and how it may be stored.
    static func answer(_ text: String, _ control: String = "max-age=600", _ fields: OriginFields = [:])
        -> OriginResponse
    {
        OriginResponse(200, fields: fields, body: .text(text)).with {
            if !control.isEmpty { $0.fields.append("Cache-Control", control) }
        }
    }

    /// One that is stale as it comes: two minutes old, and fresh for one.
    static func stale(_ text: String, _ control: String, _ fields: OriginFields = [:]) -> OriginResponse {
        answer(text, control, fields).with { $0.fields.append("Age", "120") }
    }

    /// Runs a test beside an origin that answers nothing before the test says `go`.
    static func withHeldOrigin(
        _ respond: @escaping @Sendable (OriginRequest) -> OriginResponse,
        _ body: (TestOrigin, SignalBox) async throws -> Void
    ) async throws {
        let signals = SignalBox()
        try await TestOrigin.withOrigin { request in
            try await signals.wait(for: "go")
            return respond(request)
        } run: { origin async throws in
            signals.use(origin)
            try await body(origin, signals)
        }
    }

    /// How the cache is used.
    static func mode(_ mode: CacheMode) -> RequestOptions {
        var options = RequestOptions()
        options.cacheMode = mode
        return options
    }

    /// Fields by name.
    static func fields(_ pairs: (String, String)...) -> HTTPHeaders {
        var fields = HTTPHeaders()
        for (name, value) in pairs { fields[name] = value }
        return fields
    }

    /// What is below a folder, all but what a cache always has: its index and its lock.
    static func files(_ folder: TemporaryFolder) -> [String] {
        let files = (try? FileManager.default.subpathsOfDirectory(atPath: folder.path)) ?? []
        return files.filter { !$0.hasSuffix("/index") && !$0.hasSuffix("/lock") }.sorted()
    }
}

extension HTTPExchange {
    /// A field of the response.
    func field(_ name: String) -> String? {
        HTTPField.Name(name).flatMap { response.headerFields[$0] }
    }
}

/// A value that several tasks look at and change.
final class Shared<Value: Sendable>: Sendable {
    private let state: Mutex<Value>

    init(_ value: Value) { state = Mutex(value) }

    /// Looks at the value, or changes it.
    func withLock<Result: Sendable>(_ body: (inout Value) -> Result) -> Result {
        state.withLock { value in
            var copy = value
            defer { value = copy }
            return body(&copy)
        }
    }
}

extension FlightRegistry {
    /// How many requests take part in what is under way.
    var memberCount: Int {
        all.reduce(0) { sum, flight in sum + flight.state.withLock { $0.readers.count } }
    }

    /// How many bytes of bodies on their way are held in memory: for readers, and until they are written.
    var heldByteCount: Int {
        all.reduce(0) { sum, flight in
            sum + flight.state.withLock { Int($0.received - $0.start) + $0.pendingByteCount }
        }
    }
}
