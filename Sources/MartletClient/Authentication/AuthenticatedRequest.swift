/// What authentication has to know of a request that is about to be sent, or was.
package struct AuthenticatedRequest: Sendable {
    /// Where it goes: the server's origin, or for a proxy's sake the proxy's.
    package var origin: HTTPURL.Origin
    /// The method; `CONNECT` for a tunnel.
    package var method: String
    /// The target exactly as it stands in the request line, which Digest hashes; for a server behind a proxy, as it stands
    /// in the line that the server gets: path and query.
    package var target: String
    /// The body.
    package var body: AuthenticatedBody
    /// Whether the request can be sent again.
    package var isRepeatable: Bool
    /// Whether the caller set the field that answers a challenge: it is sent as it is, and its refusal is the answer.
    package var hasOwnField: Bool

    /// A request.
    package init(
        origin: HTTPURL.Origin, method: String, target: String, body: AuthenticatedBody = .bytes([]),
        isRepeatable: Bool = true, hasOwnField: Bool = false
    ) {
        self.origin = origin
        self.method = method
        self.target = target
        self.body = body
        self.isRepeatable = isRepeatable
        self.hasOwnField = hasOwnField
    }
}
