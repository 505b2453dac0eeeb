extension HTTPHost {
    /// Asks a service one of the things it can be asked.
    ///
    /// - Throws: An ``HTTPError``, or what ``errorMapper`` makes of it, `.unacceptableStatus` among them whatever
    ///   ``validatesStatus`` says; what the endpoint's own `response(from:)` throws, as it is unless it is an ``HTTPError``;
    ///   `CancellationError`.
    public func call<Endpoint: HTTPEndpoint>(_ endpoint: Endpoint) async throws -> Endpoint.Response {
        var host = self
        // What the endpoint says is all there is to say about the status.
        host.validatesStatus = endpoint.validatesStatus
        if let encoding = endpoint.encoding { host.encoding = encoding }
        let prepared = try await mapped {
            try host.preparing(
                endpoint.method, endpoint.path, endpoint.parameters, endpoint.body, endpoint.headers,
                endpoint.options)
        }
        let exchange = try await host.send(prepared)
        return try await mapped { try endpoint.response(from: exchange) }
    }
}
