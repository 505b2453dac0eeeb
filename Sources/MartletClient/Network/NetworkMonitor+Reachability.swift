public import MartletTransport

extension NetworkMonitor {
    /// Whether a host can be reached, as an `AsyncSequence` of newest values: the first as soon as it is known, then another
    /// whenever the path has changed and it is another.
    ///
    /// It is about the host itself: proxies are left out.
    ///
    /// - Parameters:
    ///   - url: Names the host, and with its port what ``ReachabilityProbe/connection`` is made to.
    ///   - probe: What is done to find out; nothing is sent to the host by default.
    ///   - timeout: How long it may take to look the name up and to connect, together; 10 s by default. A host for which it
    ///     is not enough is unreachable.
    ///   - resolver: Looks the name up; the system's by default.
    public func reachability(
        of url: HTTPURL, probe: ReachabilityProbe = .route, timeout: Duration = .seconds(10),
        resolver: any Resolver = SystemResolver()
    ) -> some AsyncSequence<HostReachability, Never> & Sendable {
        HostReachabilities(
            monitor: self,
            check: HostCheck(url, probe: probe, timeout: timeout, kernel: kernel, resolver: resolver))
    }

    /// Whether a host can be reached, by its name or address; else as ``reachability(of:probe:timeout:resolver:)``.
    ///
    /// - Parameters:
    ///   - host: A name or an address literal, without port; that of IPv6 with brackets or without.
    ///   - port: What ``ReachabilityProbe/connection`` is made to; 1–65535, 443 by default.
    /// - Throws: Where it is neither a name nor an address.
    public func reachability(
        ofHost host: String, port: Int = 443, probe: ReachabilityProbe = .route,
        timeout: Duration = .seconds(10),
        resolver: any Resolver = SystemResolver()
    ) throws(HTTPURL.ParseError) -> some AsyncSequence<HostReachability, Never> & Sendable {
        let isBareLiteral = host.utf8.contains(UInt8(ascii: ":")) && !host.hasPrefix("[")
        let url = try HTTPURL("http://\(isBareLiteral ? "[\(host)]" : host):\(port)/")
        return reachability(of: url, probe: probe, timeout: timeout, resolver: resolver)
    }

    /// Whether a host can be reached now; ``HostReachability/Status/unknown`` where the task is cancelled before it is known.
    ///
    /// The parameters are those of ``reachability(of:probe:timeout:resolver:)``.
    public func currentReachability(
        of url: HTTPURL, probe: ReachabilityProbe = .route, timeout: Duration = .seconds(10),
        resolver: any Resolver = SystemResolver()
    ) async -> HostReachability {
        let check = HostCheck(url, probe: probe, timeout: timeout, kernel: kernel, resolver: resolver)
        return await check.run(on: kernel == nil ? await path : .unknown)
    }
}

extension HTTPHost {
    /// Whether the service's host can be reached, as a monitor sees it; the first value as soon as it is known, then another
    /// whenever the path has changed and it is another.
    ///
    /// It is a hint: no call is held back for it. The base's own host is looked at, without proxies.
    /// - Parameters:
    ///   - monitor: By default that of the session's configuration, or ``NetworkMonitor/system`` where it has none.
    ///   - probe: What is done to find out; nothing is sent to the host by default.
    public func reachability(
        on monitor: NetworkMonitor? = nil, probe: ReachabilityProbe = .route
    ) -> some AsyncSequence<HostReachability, Never> & Sendable {
        let configuration = session.configuration
        return (monitor ?? configuration.networkMonitor ?? .system)
            .reachability(of: base, probe: probe, resolver: configuration.resolver)
    }
}
