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

/// Sessions with a cache and responses of an origin, shared by the suites of the cache.
enum CacheScene {
    /// The Cache-Control value of a stale response that may be served for ten minutes during its validation.
    static let staleWhileRevalidate = "max-age=60, stale-while-revalidate=600"
    /// The Cache-Control value of a stale response that may be served instead of an error for ten minutes.
    static let staleIfError = "max-age=60, stale-if-error=600"

    /// Makes a session with a cache in memory only, or in a directory with memory in front of it.
    static func session(
        _ directory: TemporaryDirectory? = nil, options: ResponseCache.Options = .withoutPressure,
        memory: ByteCount = .mebibytes(32), _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> (HTTPSession, ResponseCache) {
        let cache: ResponseCache =
            if let directory {
                try .at(FilePath(directory.path).appending("cache"), memory: memory, options: options)
            } else {
                .memoryOnly(memory, options: options)
            }
        let session = HTTPSession.own { configuration in
            configuration.cache = cache
            change(&configuration)
        }
        return (session, cache)
    }

    /// Makes a response with a text body and a Cache-Control value.
    static func answer(_ text: String, _ control: String = "max-age=600", _ fields: OriginFields = [:])
        -> OriginResponse
    {
        OriginResponse(200, headers: fields, body: .text(text)).with {
            if !control.isEmpty { $0.headers.append("Cache-Control", control) }
        }
    }

    /// Makes a response that is already stale: its age is two minutes, and `control` should allow one.
    static func stale(_ text: String, _ control: String, _ fields: OriginFields = [:]) -> OriginResponse {
        answer(text, control, fields).with { $0.headers.append("Age", "120") }
    }

    /// Runs a test with an origin that holds all responses until the signal `go`.
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

    /// Makes request options with a cache mode.
    static func mode(_ mode: CacheMode) -> RequestOptions {
        var options = RequestOptions()
        options.cacheMode = mode
        return options
    }

    /// Makes header fields from pairs of name and value.
    static func fields(_ pairs: (String, String)...) -> HTTPHeaders {
        var fields = HTTPHeaders()
        for (name, value) in pairs { fields[name] = value }
        return fields
    }

    /// Returns the files below a directory, without the index and the lock that every cache has.
    static func files(_ directory: TemporaryDirectory) -> [String] {
        let files = (try? FileManager.default.subpathsOfDirectory(atPath: directory.path)) ?? []
        return files.filter { !$0.hasSuffix("/index") && !$0.hasSuffix("/lock") }.sorted()
    }
}

extension HTTPExchange {
    /// Returns the value of a response field; `nil` if it is absent.
    func field(_ name: String) -> String? {
        HTTPField.Name(name).flatMap { response.headerFields[$0] }
    }
}

/// A value that several tasks read and change.
final class Shared<Value: Sendable>: Sendable {
    private let state: Mutex<Value>

    init(_ value: Value) { state = Mutex(value) }

    /// Calls a function with exclusive access to the value.
    func withLock<Result: Sendable>(_ body: (inout Value) -> Result) -> Result {
        state.withLock { value in
            var copy = value
            defer { value = copy }
            return body(&copy)
        }
    }
}

extension FlightRegistry {
    /// The number of requests that take part in all flights.
    var memberCount: Int {
        all.reduce(0) { sum, flight in sum + flight.state.withLock { $0.readers.count } }
    }

    /// The number of body bytes in memory: those kept for readers and those not yet written to disk.
    var heldByteCount: Int {
        all.reduce(0) { sum, flight in
            sum + flight.state.withLock { Int($0.received - $0.start) + $0.pendingByteCount }
        }
    }
}
