package import MartletTransport

/// What keeps connections apart: where they lead, and how they were opened.
///
/// The dialer stands for everything else that must not be mixed: TLS identity and trust, resolver and overrides, local
/// address, unix domain socket.
package struct ConnectionKey: Hashable, Sendable {
    /// Where the connection leads.
    package var destination: Destination
    /// The dialer's number.
    package var dialer: UInt64
    /// The proxy it leads through, with what that is told and how it is trusted; `nil` for none.
    package var proxy: ProxyServer?

    /// Feeds its parts; the proxy only where there is one, which costs others nothing.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(destination)
        hasher.combine(dialer)
        if let proxy { hasher.combine(proxy) }
    }
}
