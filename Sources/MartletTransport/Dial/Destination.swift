/// Where a connection leads, as far as the network is concerned.
package struct Destination: Hashable, Sendable {
    /// Whether TLS is spoken.
    package var isSecure: Bool
    /// An ASCII host name, or an address literal without brackets.
    package var host: String
    /// 1–65535.
    package var port: Int

    /// A destination.
    package init(isSecure: Bool, host: String, port: Int) {
        self.isSecure = isSecure
        self.host = host
        self.port = port
    }
}
