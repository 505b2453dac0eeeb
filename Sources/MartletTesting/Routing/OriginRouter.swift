import MartletURL

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
    public var handler: OriginHandler { OriginHandler { request in try await respond(to: request) } }

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

/// The path of a route: literal segments, `{name}` for any one segment, `{name...}` for the rest of the path.
struct RoutePattern: Sendable {
    private enum Segment: Sendable {
        case literal(Substring)
        case parameter(String)
        case rest(String)
    }

    private let segments: [Segment]

    init(_ text: String) {
        segments = RoutePattern.split(text).map { part in
            guard part.hasPrefix("{"), part.hasSuffix("}") else { return .literal(part) }
            let name = part.dropFirst().dropLast()
            return name.hasSuffix("...") ? .rest(String(name.dropLast(3))) : .parameter(String(name))
        }
    }

    private static func split(_ path: String) -> [Substring] {
        path.drop { $0 == "/" }.split(separator: "/", omittingEmptySubsequences: false)
    }

    /// What the placeholders stand for in a path, decoded (the rest of a path: as sent); `nil` when it does
    /// not match.
    func match(_ path: String) -> [String: String]? {
        let parts = RoutePattern.split(path)
        var parameters: [String: String] = [:]
        for (index, segment) in segments.enumerated() {
            if case .rest(let name) = segment {
                parameters[name] = parts.dropFirst(index).joined(separator: "/")
                return parameters
            }
            guard index < parts.count else { return nil }
            switch segment {
            case .literal(let text): guard parts[index] == text else { return nil }
            case .parameter(let name):
                guard !parts[index].isEmpty else { return nil }
                parameters[name] = PercentEncoding.decoded(String(parts[index]))
            case .rest: break
            }
        }
        return parts.count == segments.count ? parameters : nil
    }
}
