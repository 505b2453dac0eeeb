/// A request of a host's, ready to be sent: by that host's session or whoever takes it.
///
/// ```swift
/// let prepared = try api.prepare(.post, "posts", parameters: draft)
/// let exchange = try await session.send(prepared.request, body: prepared.body, options: prepared.options)
/// ```
public struct PreparedRequest: Sendable {
    /// The head, with the host's fields.
    public var request: HTTPRequest
    /// The body.
    public var body: HTTPBody
    /// What the call does otherwise than its session. The host's credentials are here, where they are for this request.
    public var options: RequestOptions
    /// Where it goes.
    let url: HTTPURL
}

extension PreparedRequest: CustomStringConvertible, CustomReflectable {
    /// The method and the origin.
    public var description: String { "\(request.method.rawValue) \(url.origin)" }
    /// The same as ``description``.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}
