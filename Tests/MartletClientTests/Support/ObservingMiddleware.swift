import Martlet

/// A middleware that only observes events.
protocol ObservingMiddleware: HTTPMiddleware {}

extension ObservingMiddleware {
    func handle(_ request: HTTPCall.Request, context: CallContext, next: HTTPNext) async throws -> HTTPCall.Response {
        try await next(request)
    }
}
