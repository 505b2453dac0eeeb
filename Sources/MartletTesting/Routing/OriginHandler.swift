import Synchronization

/// What answers the requests of a test origin or a mock transport: a closure, a router, or one of the
/// ready-made ones.
public struct OriginHandler: Sendable {
    /// Answers one request. Requests of different connections are answered at the same time.
    ///
    /// When the client leaves before the answer, the closure's task is cancelled. What it throws becomes a
    /// response with status 500 and the error as its text; an ``OriginFault`` happens to the connection
    /// instead.
    public typealias Respond = @Sendable (OriginRequest) async throws -> OriginResponse

    private let closure: Respond

    /// A handler from a closure.
    public init(_ respond: @escaping Respond) { closure = respond }

    /// Answers a request.
    public func respond(to request: OriginRequest) async throws -> OriginResponse {
        try await closure(request)
    }

    /// Always the same response.
    public static func fixed(_ response: OriginResponse) -> OriginHandler { OriginHandler { _ in response } }
}

extension OriginHandler {
    /// A router filled by a closure: `.router { $0.get("/ping", .fixed(.text("pong"))) }`.
    public static func router(_ fill: (inout OriginRouter) -> Void) -> OriginHandler {
        var router = OriginRouter()
        fill(&router)
        return router.handler
    }

    /// Tells what the request was, as JSON: an ``EchoReport``.
    public static let echo = OriginHandler { request in try .json(try await EchoReport(request)) }

    /// Sends the request's body back as it comes, with its type.
    public static let mirror = OriginHandler { request in
        let body = request.body
        var response = OriginResponse(
            body: .stream(length: body.declaredLength) { writer in
                for try await chunk in body { try await writer.write(chunk) }
            })
        response.fields["Content-Type"] = request.fields["Content-Type"] ?? "application/octet-stream"
        return response
    }

    /// Takes the request's body, whatever its length, and tells length and CRC-32 of it as JSON: an
    /// ``UploadReport``.
    public static let upload = OriginHandler { request in try .json(try await UploadReport(request.body)) }

    /// Sends the request's field lines back as text, one for each line.
    public static let headers = OriginHandler { request in
        .text(request.fields.map { "\($0.name): \($0.value)\n" }.joined())
    }

    /// Counts its requests: the first answer is `1`.
    public static func counter() -> OriginHandler {
        let counter = Counter()
        return OriginHandler { _ in .text("\(counter.next())") }
    }

    private final class Counter: Sendable {
        private let count = Mutex(0)

        func next() -> Int {
            count.withLock { count in
                count += 1
                return count
            }
        }
    }

    /// Answers after a pause; a client that leaves ends it.
    public static func delay(
        _ duration: Duration, then handler: OriginHandler = .fixed(.text("ok"))
    ) -> OriginHandler {
        OriginHandler { request in try await handler.respond(to: request).with { $0.delay += duration } }
    }

    /// Answers with a status alone, and its phrase as text.
    public static func status(_ code: Int) -> OriginHandler {
        .fixed(.text("\(code) \(StatusPhrase.of(code))\n", status: code))
    }

    /// So many bytes of ``TestPattern``, with their length and ranges of them on request.
    public static func bytes(_ count: UInt64) -> OriginHandler {
        .content(OriginContent(body: .pattern(count), entityTag: "\"pattern-\(count)\""))
    }

    /// So many bytes of ``TestPattern`` in chunks of a size.
    public static func chunked(_ count: UInt64, size: Int = 4096) -> OriginHandler {
        .fixed(OriginResponse.pattern(count).with { $0.framing = .chunked(size: size) })
    }

    /// A redirect.
    public static func redirect(to location: String, status: Int = 302) -> OriginHandler {
        .fixed(.redirect(to: location, status: status))
    }

    /// So many bytes of ``TestPattern``, slowly.
    public static func drip(_ count: UInt64, bytesPerSecond: Int) -> OriginHandler {
        .fixed(OriginResponse.pattern(count).with { $0.pacing = .bytesPerSecond(bytesPerSecond) })
    }

    /// Something with validators and ranges, such as a version of a file.
    public static func content(_ content: OriginContent) -> OriginHandler {
        OriginHandler { request in content.response(to: request) }
    }

    /// A fault instead of an answer, or in its midst.
    /// - Parameter response: The response it happens in, where it is to happen behind some bytes.
    public static func fault(_ fault: OriginFault, in response: OriginResponse = .text("")) -> OriginHandler {
        .fixed(response.with { $0.fault = fault })
    }
}
