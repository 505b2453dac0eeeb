import FoundationEssentials
import Martlet
import MartletTesting
import SystemPackage
import Testing

/// Code of the program may run between the head of a response and its body, while a cache receives that body.
@Suite("Bodies that arrive after their heads")
struct LateBodyTests {
    /// A middleware that changes nothing.
    private struct Pass: ObservingMiddleware {}

    /// A middleware that wraps the body.
    private struct Wrap: HTTPMiddleware {
        func handle(
            _ request: HTTPCall.Request, context: CallContext, next: HTTPNext
        ) async throws -> HTTPCall.Response {
            var response = try await next(request)
            if let body = response.body { response.setBody(body) }
            return response
        }
    }

    private enum AtCache: FeatureKey {
        static var defaultValue: Bool { false }
        static var position: StagePosition { .cache }
        static func middleware(for isOn: Bool) -> (any HTTPMiddleware)? { isOn ? Pass() : nil }
    }

    private final class Ignoring: SessionDelegate {}

    /// The code of the program that handles the response before the body is read.
    enum Code: CaseIterable {
        case none, middleware, twoMiddlewares, wrappingMiddleware, featureAtCache, delegate, validator, everything

        func add(to configuration: inout SessionConfiguration) {
            switch self {
            case .none: break
            case .middleware: configuration.middleware = [Pass()]
            case .twoMiddlewares: configuration.middleware = [Pass(), Pass()]
            case .wrappingMiddleware: configuration.middleware = [Pass(), Wrap()]
            case .featureAtCache: configuration[AtCache.self] = true
            case .delegate: configuration.delegate = Ignoring()
            case .validator: configuration.validator = .status(200..<600)
            case .everything:
                configuration.middleware = [Pass(), Wrap(), Pass()]
                configuration[AtCache.self] = true
                configuration.delegate = Ignoring()
                configuration.retry = .transient(maximumAttempts: 2, backoff: .constant(.zero))
            }
        }
    }

    enum Cache: CaseIterable {
        case none, memory, disk

        func make(in directory: TemporaryDirectory) throws -> ResponseCache? {
            switch self {
            case .none: nil
            case .memory: .memoryOnly(.mebibytes(8))
            case .disk: try .at(FilePath(directory.path).appending("cache"), memory: .bytes(0))
            }
        }
    }

    @Test("Each body is complete, whatever code of the program runs before it arrives", arguments: Code.allCases)
    func complete(_ code: Code) async throws {
        let text = String(repeating: "late ", count: 20)
        try await TestOrigin.withOrigin { request in
            let status = request.path.hasPrefix("/missing") ? 404 : 200
            let length = request.path.hasSuffix("chunked") ? nil : UInt64(text.utf8.count)
            return OriginResponse(
                status, headers: ["Cache-Control": "max-age=600"],
                body: .stream(length: length) { writer in
                    try await writer.pause(for: .milliseconds(10))
                    try await writer.write(text)
                })
        } run: { origin async throws in
            for cache in Cache.allCases {
                let directory = try TemporaryDirectory()
                let store = try cache.make(in: directory)
                let session = HTTPSession.own { configuration in
                    configuration.cache = store
                    code.add(to: &configuration)
                }
                for number in 0..<6 {
                    for path in ["/\(cache)/\(number)", "/missing/\(cache)/\(number)", "/\(cache)/\(number)/chunked"] {
                        let url = origin.url(path)
                        #expect(try await session.get(url).text == text, "\(path)")
                        // The second response is from the cache, if there is one.
                        let second = try await session.stream(url) { _, body in try await body.text() }
                        #expect(second == text, "\(path)")
                    }
                    let open = try await session.open(origin.url("/\(cache)/open/\(number)"))
                    #expect(try await open.body.text() == text)
                    let target = FilePath(directory.path).appending("file-\(number)")
                    _ = try await session.download(origin.url("/\(cache)/file/\(number)"), to: target)
                    #expect(try Data(contentsOf: URL(filePath: target.string)) == Data(text.utf8))
                }
            }
        }
    }
}
