/// Chooses a handler by method and path; the first route that matches wins.
///
/// A pattern is a path in which `{name}` stands for any one segment and `{name...}`, at the end, for all that
/// follow; what they stood for is in ``OriginRequest/parameters``. `HEAD` is answered by the routes of `GET`.
/// A path without a route is a 404, a route of other methods alone a 405.
public struct OriginRouter: Sendable {
    private struct Route: Sendable {
        let method: String?
        let pattern: RoutePattern
        let handler: OriginHandler
    }

    private var routes: [Route] = []

    /// A router without routes.
    public init() {}

    /// Adds a route.
    /// - Parameters:
    ///   - method: The method; `nil` for any.
    ///   - pattern: The path.
    ///   - handler: What answers.
    public mutating func on(_ method: String?, _ pattern: String, _ handler: OriginHandler) {
        routes.append(Route(method: method, pattern: RoutePattern(pattern), handler: handler))
    }

    /// Adds a route for any method.
    public mutating func any(_ pattern: String, _ handler: OriginHandler) { on(nil, pattern, handler) }

    /// Adds a route for any method, answered by a closure.
    public mutating func any(_ pattern: String, _ respond: @escaping OriginHandler.Respond) {
        on(nil, pattern, OriginHandler(respond))
    }

    /// Adds a route for GET and HEAD.
    public mutating func get(_ pattern: String, _ handler: OriginHandler) { on("GET", pattern, handler) }

    /// Adds a route for GET and HEAD, answered by a closure.
    public mutating func get(_ pattern: String, _ respond: @escaping OriginHandler.Respond) {
        on("GET", pattern, OriginHandler(respond))
    }

    /// Adds a route for POST.
    public mutating func post(_ pattern: String, _ handler: OriginHandler) { on("POST", pattern, handler) }

    /// Adds a route for POST, answered by a closure.
    public mutating func post(_ pattern: String, _ respond: @escaping OriginHandler.Respond) {
        on("POST", pattern, OriginHandler(respond))
    }

    /// Adds a route for PUT.
    public mutating func put(_ pattern: String, _ handler: OriginHandler) { on("PUT", pattern, handler) }

    /// Adds a route for PUT, answered by a closure.
    public mutating func put(_ pattern: String, _ respond: @escaping OriginHandler.Respond) {
        on("PUT", pattern, OriginHandler(respond))
    }

    /// This router as a handler.
    public var handler: OriginHandler {
        OriginHandler { request in try await respond(to: request) }
    }

    private func respond(to request: OriginRequest) async throws -> OriginResponse {
        var allowed: [String] = []
        for route in routes {
            guard let parameters = route.pattern.match(request.path) else { continue }
            if let method = route.method, method != request.method,
                !(method == "GET" && request.method == "HEAD")
            {
                allowed.append(method)
                continue
            }
            var request = request
            request.parameters = parameters
            return try await route.handler.respond(to: request)
        }
        guard allowed.isEmpty else {
            return OriginResponse.text("\(request.method) is not allowed here\n", status: 405).with {
                $0.fields["Allow"] = allowed.joined(separator: ", ")
            }
        }
        return .text("There is nothing at \(request.path)\n", status: 404)
    }
}
