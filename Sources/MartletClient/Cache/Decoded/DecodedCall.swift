/// A request for a value, as it is put to the session.
struct DecodedCall: Sendable {
    /// What is asked for.
    let resource: DecodedResource
    /// How otherwise than the session.
    let options: RequestOptions

    /// A request.
    init(_ request: HTTPRequest, secretURL: HTTPURL? = nil, options: RequestOptions) {
        resource = DecodedResource(request, secretURL: secretURL, options: options)
        self.options = options
    }

    /// A request for a URL.
    /// - Throws: An ``HTTPError`` with the code `.invalidURL`.
    init(_ url: String, headers: HTTPFields, options: RequestOptions) throws(HTTPError) {
        let url = try HTTPSession.url(url)
        // A request has no room for a name and a password: they go along in the URL, as in a session's `get`.
        self.init(
            HTTPRequest(method: .get, url: url, headerFields: headers),
            secretURL: url.userInfo == nil ? nil : url, options: options)
    }

    /// Puts it to a session.
    /// - Throws: An ``HTTPError``; `CancellationError`.
    func send(through session: HTTPSession) async throws -> HTTPExchange {
        let request = resource.request
        guard let url = resource.secretURL else { return try await session.send(request, options: options) }
        return try await session.send(request.method, url, headers: request.headerFields, options: options)
    }
}
