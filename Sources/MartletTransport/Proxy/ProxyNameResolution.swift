/// Who looks up the name of a server that is reached through a SOCKS proxy.
public enum ProxyNameResolution: String, Hashable, Sendable, Codable {
    /// This machine does, and tells the proxy an address: `socks5://`, curl's `--socks5`.
    case resolvedLocally
    /// The proxy does, and no name leaves this machine otherwise: `socks5h://`, curl's `--socks5-hostname`.
    case resolvedRemotely
}
