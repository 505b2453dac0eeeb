public import HTTPTypes
import MartletURL

/// A table of handlers by method and path; the first matching route wins.
///
/// A pattern is a path. In it, `:name` or `{name}` matches any one segment, and `{name...}` at the end matches the rest
/// of the path. Their values are in ``OriginRequest/parameters``: with `/users/:id`, `request.parameters["id"]`. Routes
/// for `GET` also handle `HEAD`. A path without a route is a 404; a path whose routes are for other methods is a 405.
public struct OriginRouter: Sendable {
    private var routes: [(method: HTTPRequest.Method?, pattern: RoutePattern, handler: OriginHandler)] = []

    /// Returns a response, or throws an ``OriginFault``.
    public typealias Respond = OriginHandler.Respond

    /// Creates a router without routes.
    public init() {}

    /// Adds a route.
    /// - Parameters:
    ///   - method: The method; `nil` for any.
    ///   - pattern: The pattern of the path, such as `/users/:id` or `/files/{path...}`.
    ///   - handler: The handler.
    public mutating func on(_ method: HTTPRequest.Method?, _ pattern: String, _ handler: OriginHandler) {
        routes.append((method, RoutePattern(pattern), handler))
    }

    /// Adds a route with a closure.
    /// - Parameters:
    ///   - method: The method; `nil` for any.
    ///   - pattern: The pattern of the path.
    ///   - respond: Returns the response, or throws an ``OriginFault``.
    public mutating func on(
        _ method: HTTPRequest.Method?, _ pattern: String, _ respond: @escaping Respond
    ) { on(method, pattern, OriginHandler(respond)) }

    /// Adds a route for any method.
    public mutating func any(_ pattern: String, _ handler: OriginHandler) { on(nil, pattern, handler) }

    /// Adds a route for any method, with a closure.
    public mutating func any(_ pattern: String, _ respond: @escaping Respond) { on(nil, pattern, respond) }

    /// Adds a route for GET and HEAD.
    public mutating func get(_ pattern: String, _ handler: OriginHandler) { on(.get, pattern, handler) }

    /// Adds a route for GET and HEAD, with a closure.
    public mutating func get(_ pattern: String, _ respond: @escaping Respond) { on(.get, pattern, respond) }

    /// Adds a route for HEAD only.
    public mutating func head(_ pattern: String, _ handler: OriginHandler) { on(.head, pattern, handler) }

    /// Adds a route for HEAD only, with a closure.
    public mutating func head(_ pattern: String, _ respond: @escaping Respond) { on(.head, pattern, respond) }

    /// Adds a route for POST.
    public mutating func post(_ pattern: String, _ handler: OriginHandler) { on(.post, pattern, handler) }

    /// Adds a route for POST, with a closure.
    public mutating func post(_ pattern: String, _ respond: @escaping Respond) { on(.post, pattern, respond) }

    /// Adds a route for PUT.
    public mutating func put(_ pattern: String, _ handler: OriginHandler) { on(.put, pattern, handler) }

    /// Adds a route for PUT, with a closure.
    public mutating func put(_ pattern: String, _ respond: @escaping Respond) { on(.put, pattern, respond) }

    /// Adds a route for PATCH.
    public mutating func patch(_ pattern: String, _ handler: OriginHandler) { on(.patch, pattern, handler) }

    /// Adds a route for PATCH, with a closure.
    public mutating func patch(_ pattern: String, _ respond: @escaping Respond) { on(.patch, pattern, respond) }

    /// Adds a route for DELETE.
    public mutating func delete(_ pattern: String, _ handler: OriginHandler) { on(.delete, pattern, handler) }

    /// Adds a route for DELETE, with a closure.
    public mutating func delete(_ pattern: String, _ respond: @escaping Respond) { on(.delete, pattern, respond) }

    /// This router as a handler.
    public var handler: OriginHandler { OriginHandler { request in try await respond(to: request) } }

    private func respond(to request: OriginRequest) async throws -> OriginResponse {
        var allowed: [String] = []
        for route in routes {
            guard let parameters = route.pattern.match(request.path) else { continue }
            if let method = route.method, method != request.method, method != .get || request.method != .head {
                allowed.append(method.rawValue)
                continue
            }
            var request = request
            request.parameters = parameters
            return try await route.handler.respond(to: request)
        }
        if allowed.isEmpty { return .text("no route matches \(request.path)\n", status: 404) }
        return .text("no route for \(request.method) matches \(request.path)\n", status: 405).with {
            $0.headers["Allow"] = allowed.joined(separator: ", ")
        }
    }
}

/// The path pattern of a route; see ``OriginRouter``.
private struct RoutePattern: Sendable {
    private enum Segment: Sendable {
        case literal(Substring)
        case parameter(String)
        case rest(String)
    }

    private let segments: [Segment]

    init(_ text: String) {
        segments = RoutePattern.split(text).map { part in
            if part.hasPrefix(":"), part.count > 1 { return .parameter(String(part.dropFirst())) }
            guard part.hasPrefix("{"), part.hasSuffix("}") else { return .literal(part) }
            let name = part.dropFirst().dropLast()
            return name.hasSuffix("...") ? .rest(String(name.dropLast(3))) : .parameter(String(name))
        }
    }

    private static func split(_ path: String) -> [Substring] {
        path.drop { $0 == "/" }.split(separator: "/", omittingEmptySubsequences: false)
    }

    /// Returns the values of the placeholders, or `nil` without a match. Only single segments are percent-decoded.
    func match(_ path: String) -> [String: String]? {
        let parts = RoutePattern.split(path)
        var parameters: [String: String] = [:]
        for (index, segment) in segments.enumerated() {
            switch segment {
            case .rest(let name):
                parameters[name] = parts.dropFirst(index).joined(separator: "/")
                return parameters
            case .literal(let text): guard index < parts.count, parts[index] == text else { return nil }
            case .parameter(let name):
                guard index < parts.count, !parts[index].isEmpty else { return nil }
                parameters[name] = PercentEncoding.decoded(String(parts[index]))
            }
        }
        return parts.count == segments.count ? parameters : nil
    }
}
