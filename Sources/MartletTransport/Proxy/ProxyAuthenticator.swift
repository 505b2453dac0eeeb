/// What makes the values of `Proxy-Authorization` (RFC 9110 §11.7).
///
/// What it remembers belongs to proxies alone: no server's challenge may reach it, and none of its values a server.
package protocol ProxyAuthenticator: Sendable {
    /// What a request says before it is asked for credentials.
    /// - Returns: The field's value; `nil` to send none.
    func unaskedValue(for request: ProxyAuthenticationRequest) -> String?

    /// What answers a 407; called once for a request.
    /// - Parameters:
    ///   - challenges: The values of its `Proxy-Authenticate` fields, as they came.
    ///   - refused: The value that the refused request had; `nil` where it had none.
    /// - Returns: The field's value for another try; `nil` where another would be refused again.
    func value(
        answering challenges: [String], refused: String?, for request: ProxyAuthenticationRequest
    ) -> String?
}

/// A request that a proxy is to be convinced of.
package struct ProxyAuthenticationRequest: Sendable {
    /// The proxy, with its credentials.
    package var proxy: ProxyServer
    /// The method in the request line.
    package var method: String
    /// The target in the request line: `host:port` of a CONNECT, else an absolute URL.
    package var target: String

    /// A request.
    package init(proxy: ProxyServer, method: String, target: String) {
        self.proxy = proxy
        self.method = method
        self.target = target
    }
}
