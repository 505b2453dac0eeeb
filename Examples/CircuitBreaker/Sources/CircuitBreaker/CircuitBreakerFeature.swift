public import MartletCore

/// The setting of a circuit breaker, and its effect on a call.
enum CircuitBreakerFeature: FeatureKey {
    static var defaultValue: CircuitBreaker? { nil }
    /// The last place. Each request passes it, also one repeated with credentials.
    static var position: StagePosition { .cache }

    static func middleware(for breaker: CircuitBreaker?) -> (any HTTPMiddleware)? {
        breaker.map(BreakerMiddleware.init)
    }
}

extension SessionConfiguration {
    /// The circuit breaker of the session's calls; `nil` (the default) for none.
    public var circuitBreaker: CircuitBreaker? {
        get { self[CircuitBreakerFeature.self] }
        set { self[CircuitBreakerFeature.self] = newValue }
    }
}

extension RequestOptions {
    /// Whether this call passes the session's circuit breaker; `true` by default.
    public var usesCircuitBreaker: Bool {
        get {
            if case .some(.none) = self[CircuitBreakerFeature.self] { return false }
            return true
        }
        set { self[CircuitBreakerFeature.self] = newValue ? .none : .some(.none) }
    }
}

private struct BreakerMiddleware: HTTPMiddleware {
    let breaker: CircuitBreaker

    func handle(
        _ request: HTTPCall.Request, context: CallContext, next: HTTPNext
    ) async throws -> HTTPCall.Response {
        let authority = request.head.authority ?? ""
        try breaker.admit(authority)
        do {
            let response = try await next(request)
            // A response from a cache says nothing about the host.
            if response.source == .network {
                breaker.finished(authority, failed: response.status.code >= 500)
            }
            return response
        } catch {
            if !(error is CancellationError) { breaker.finished(authority, failed: true) }
            throw error
        }
    }
}
