import Synchronization

/// Handles the requests of a test origin or a mock transport: a closure, a router, or a ready-made handler.
public struct OriginHandler: Sendable {
    /// Responds to one request. Requests of different connections are handled concurrently.
    ///
    /// If the client disconnects early, the closure's task is cancelled. A thrown error becomes a response with status
    /// 500 and the error as its text; an ``OriginFault`` happens to the connection instead.
    public typealias Respond = @Sendable (OriginRequest) async throws -> OriginResponse

    private let closure: Respond

    /// Creates a handler from a closure.
    public init(_ respond: @escaping Respond) { closure = respond }

    /// Responds to a request.
    public func respond(to request: OriginRequest) async throws -> OriginResponse { try await closure(request) }

    /// Returns the same response to every request.
    public static func fixed(_ response: OriginResponse) -> OriginHandler { OriginHandler { _ in response } }

    /// A router that a closure sets up: `.router { $0.get("/ping", .fixed(.text("pong"))) }`.
    public static func router(_ fill: (inout OriginRouter) -> Void) -> OriginHandler {
        var router = OriginRouter()
        fill(&router)
        return router.handler
    }

    /// Describes the request as JSON: an ``EchoReport``.
    public static let echo = OriginHandler { request in try .json(try await EchoReport(request)) }

    /// Sends the request's body back as it arrives, with its Content-Type.
    public static let mirror = OriginHandler { request in
        let body = request.body
        return OriginResponse(
            contentType: request.contentType ?? "application/octet-stream",
            body: .stream(length: body.declaredLength) { writer in
                for try await chunk in body { try await writer.write(chunk) }
            })
    }

    /// Reads the request's body of any length, and reports its length and CRC-32 as JSON: an ``UploadReport``.
    public static let upload = OriginHandler { request in try .json(try await UploadReport(request.body)) }

    /// Sends the request's field lines back as text, one for each line.
    public static let headers = OriginHandler { request in
        .text(request.headers.map { "\($0.name): \($0.value)\n" }.joined())
    }

    /// Counts its requests: the first response is `1`.
    public static func counter() -> OriginHandler {
        let count = Atomic(0)
        return OriginHandler { _ in .text("\(count.wrappingAdd(1, ordering: .relaxed).newValue)") }
    }

    /// Responds after a delay. The delay ends early if the client disconnects.
    public static func delay(_ duration: Duration, then handler: OriginHandler = .fixed(.text("ok"))) -> OriginHandler {
        OriginHandler { request in try await handler.respond(to: request).with { $0.delay += duration } }
    }

    /// Responds with a status and its reason phrase; see ``OriginResponse/status(_:headers:)``.
    public static func status(_ code: Int, headers: OriginFields = [:]) -> OriginHandler {
        .fixed(.status(code, headers: headers))
    }

    /// Responds with a text; see ``OriginResponse/text(_:status:headers:contentType:)``.
    public static func text(
        _ text: String, status: Int = 200, headers: OriginFields = [:],
        contentType: String = "text/plain; charset=utf-8"
    ) -> OriginHandler { .fixed(.text(text, status: status, headers: headers, contentType: contentType)) }

    /// Responds with a JSON text; see ``OriginResponse/json(text:status:headers:contentType:)``.
    public static func json(
        text: String, status: Int = 200, headers: OriginFields = [:], contentType: String = "application/json"
    ) -> OriginHandler { .text(text, status: status, headers: headers, contentType: contentType) }

    /// One handler for each request, in the order of their arrival; the last one repeats:
    /// `.inTurn([.status(503), .echo])`. Without handlers, each request is a 404.
    public static func inTurn(_ handlers: [OriginHandler]) -> OriginHandler {
        let count = Atomic(0)
        return OriginHandler { request in
            let index = min(count.wrappingAdd(1, ordering: .relaxed).newValue, handlers.count) - 1
            return index < 0 ? .status(404) : try await handlers[index].respond(to: request)
        }
    }

    /// Responds with bytes; see ``OriginResponse/bytes(_:status:headers:contentType:)``.
    public static func bytes(
        _ bytes: [UInt8], status: Int = 200, headers: OriginFields = [:],
        contentType: String = "application/octet-stream"
    ) -> OriginHandler { .fixed(.bytes(bytes, status: status, headers: headers, contentType: contentType)) }

    /// Responds with bytes that are compressed already; see ``OriginResponse/encoded(_:coding:headers:contentType:)``.
    public static func encoded(
        _ bytes: [UInt8], coding: String, headers: OriginFields = [:], contentType: String = "text/plain; charset=utf-8"
    ) -> OriginHandler { .fixed(.encoded(bytes, coding: coding, headers: headers, contentType: contentType)) }

    /// Responds with a number of bytes of ``TestPattern``, with Content-Length and an entity tag.
    /// - Parameters:
    ///   - count: The number of bytes.
    ///   - acceptsRanges: Whether the response to a range request is a 206; with `false` it is a 200 with all bytes.
    public static func bytes(_ count: UInt64, acceptsRanges: Bool = true) -> OriginHandler {
        .content(OriginContent(body: .pattern(count), entityTag: "\"pattern-\(count)\"", acceptsRanges: acceptsRanges))
    }

    /// A number of bytes of ``TestPattern`` in chunks of a size.
    public static func chunked(_ count: UInt64, size: Int = 4096) -> OriginHandler {
        .fixed(OriginResponse.pattern(count).with { $0.framing = .chunked(size: size) })
    }

    /// A redirect to a location; status 302 by default.
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
    /// - Parameters:
    ///   - fault: The fault.
    ///   - response: The response in which the fault happens; `nil` for that of a thrown fault, see ``OriginFault``.
    public static func fault(_ fault: OriginFault, in response: OriginResponse? = nil) -> OriginHandler {
        .fixed((response ?? fault.response).with { $0.fault = fault })
    }
}
