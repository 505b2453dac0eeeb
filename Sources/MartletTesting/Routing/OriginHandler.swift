import Synchronization

/// Handles the requests of a test origin or a mock transport: a closure, a router, or a ready-made handler.
public struct OriginHandler: Sendable {
    /// Responds to one request. Requests of different connections are handled concurrently.
    ///
    /// If the client leaves before the response, the closure's task is cancelled. A thrown error becomes a response with status
    /// 500 and the error as its text; an ``OriginFault`` happens to the connection instead.
    public typealias Respond = @Sendable (OriginRequest) async throws -> OriginResponse

    private let closure: Respond

    /// Creates a handler from a closure.
    public init(_ respond: @escaping Respond) { closure = respond }

    /// Responds to a request.
    public func respond(to request: OriginRequest) async throws -> OriginResponse {
        try await closure(request)
    }

    /// Always the same response.
    public static func fixed(_ response: OriginResponse) -> OriginHandler { OriginHandler { _ in response } }
}

extension OriginHandler {
    /// A router that a closure sets up: `.router { $0.get("/ping", .fixed(.text("pong"))) }`.
    public static func router(_ fill: (inout OriginRouter) -> Void) -> OriginHandler {
        var router = OriginRouter()
        fill(&router)
        return router.handler
    }

    /// Describes the request as JSON: an ``EchoReport``.
    public static let echo = OriginHandler { request in try .json(try await EchoReport(request)) }

    /// Sends the request's body back as it arrives, with its type.
    public static let mirror = OriginHandler { request in
        let body = request.body
        var response = OriginResponse(
            body: .stream(length: body.declaredLength) { writer in
                for try await chunk in body { try await writer.write(chunk) }
            })
        response.fields["Content-Type"] = request.fields["Content-Type"] ?? "application/octet-stream"
        return response
    }

    /// Reads the request's body of any length, and reports its length and CRC-32 as JSON: an ``UploadReport``.
    public static let upload = OriginHandler { request in try .json(try await UploadReport(request.body)) }

    /// Sends the request's field lines back as text, one for each line.
    public static let headers = OriginHandler { request in
        .text(request.fields.map { "\($0.name): \($0.value)\n" }.joined())
    }

    /// Counts its requests: the first response is `1`.
    public static func counter() -> OriginHandler {
        let counter = Counter()
        return OriginHandler { _ in .text("\(counter.count.wrappingAdd(1, ordering: .relaxed).newValue)") }
    }

    private final class Counter: Sendable {
        let count = Atomic(0)
    }

    /// Responds after a pause; a client that leaves ends it.
    public static func delay(
        _ duration: Duration, then handler: OriginHandler = .fixed(.text("ok"))
    ) -> OriginHandler {
        OriginHandler { request in try await handler.respond(to: request).with { $0.delay += duration } }
    }

    /// Responds with a status, and its phrase as text.
    public static func status(_ code: Int) -> OriginHandler {
        .fixed(.text("\(code) \(StatusPhrase.of(code))\n", status: code))
    }

    /// A number of bytes of ``TestPattern``, with their length, and with ranges on request.
    public static func bytes(_ count: UInt64) -> OriginHandler {
        .content(OriginContent(body: .pattern(count), entityTag: "\"pattern-\(count)\""))
    }

    /// A number of bytes of ``TestPattern`` in chunks of a size.
    public static func chunked(_ count: UInt64, size: Int = 4096) -> OriginHandler {
        .fixed(OriginResponse.pattern(count).with { $0.framing = .chunked(size: size) })
    }

    /// A redirect.
    public static func redirect(to location: String, status: Int = 302) -> OriginHandler {
        .fixed(.redirect(to: location, status: status))
    }

    /// A number of bytes of ``TestPattern``, sent slowly.
    public static func drip(_ count: UInt64, bytesPerSecond: Int) -> OriginHandler {
        .fixed(OriginResponse.pattern(count).with { $0.pacing = .bytesPerSecond(bytesPerSecond) })
    }

    /// Content with validators and ranges, such as a version of a file.
    public static func content(_ content: OriginContent) -> OriginHandler {
        OriginHandler { request in content.response(to: request) }
    }

    /// A fault instead of a response, or within one.
    /// - Parameter response: The response in which the fault happens, if it happens after some bytes.
    public static func fault(_ fault: OriginFault, in response: OriginResponse = .text("")) -> OriginHandler {
        .fixed(response.with { $0.fault = fault })
    }
}
