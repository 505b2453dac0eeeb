import MartletTransport

extension SessionConfiguration {
    /// Where connections for a URL lead by what the caller says of it: a socket's path, another host or port, or given
    /// addresses; `nil` where they lead to where the URL says, whatever is said of others. A proxy looks names up itself, and
    /// given addresses count all the same: which proxy a call takes is not known here, and they cost a request at most.
    func otherPlace(of url: HTTPURL) -> String? {
        // A connector looks at none of these.
        guard connector == nil else { return nil }
        if let unixSocketPath { return "unix " + unixSocketPath }
        guard !connectRedirections.isEmpty || !resolveOverrides.isEmpty else { return nil }
        var (host, port) = (url.host, url.port)
        if let redirection = connectRedirections.first(where: { $0.applies(to: host, port: port) }) {
            (host, port) = (redirection.toHost ?? host, redirection.toPort ?? port)
        }
        let given =
            resolveOverrides[Endpoint(host: host, port: port)]
            ?? resolveOverrides[Endpoint(host: "*", port: port)]
        guard given != nil || host != url.host || port != url.port else { return nil }
        return (["\(host) \(port)"] + (given ?? []).map(\.description)).joined(separator: " ")
    }
}
