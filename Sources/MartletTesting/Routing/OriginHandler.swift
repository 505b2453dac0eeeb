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
    public init(_ respond: @escaping Respond) {
        closure = respond
    }

    /// Answers a request.
    public func respond(to request: OriginRequest) async throws -> OriginResponse {
        try await closure(request)
    }

    /// Always the same response.
    public static func fixed(_ response: OriginResponse) -> OriginHandler {
        OriginHandler { _ in response }
    }
}
