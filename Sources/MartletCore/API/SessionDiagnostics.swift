/// A snapshot of a session's connections and calls, and of the resources of the process, for logs, health pages and
/// leak tests. The values are read one after the other while calls run, so they may not match exactly.
public struct SessionDiagnostics: Hashable, Sendable, CustomStringConvertible {
    /// The counts of a host: of all connections and requests with one scheme, name, port and proxy.
    public struct Host: Hashable, Sendable {
        /// The scheme, name and port, such as `https://example.com:443`, followed by the proxy of a tunnel, as in
        /// `https://example.com:443 through http://proxy.example:3128`. A forwarding proxy is listed as a host.
        public var origin: String
        /// The number of open connections that are free.
        public var idle = 0
        /// The number of connections in use.
        public var leased = 0
        /// The number of connections being opened, including abandoned attempts that have not ended.
        public var dialing = 0
        /// The number of requests that wait for a connection.
        public var waiting = 0

        /// Creates the counts of a host.
        public init(origin: String, idle: Int = 0, leased: Int = 0, dialing: Int = 0, waiting: Int = 0) {
            (self.origin, self.idle, self.leased) = (origin, idle, leased)
            (self.dialing, self.waiting) = (dialing, waiting)
        }

        fileprivate var counts: String { "\(leased) leased, \(idle) idle, \(dialing) dialling, \(waiting) waiting" }
    }

    /// The number of running calls of the session and its views.
    public var runningCalls: Int
    /// The number of connections of the session and its views in each state, and of requests that wait for one.
    public var pool: PoolStatus
    /// The hosts with a connection or a waiting request, sorted by name.
    public var hosts: [Host]
    /// The number of open sockets of Martlet in this process, of all sessions.
    public var processSockets: Int
    /// The number of timers in this process; cancelled ones count until they are removed.
    public var processTimers: Int
    /// The number of threads for blocking work, such as name resolution. They end after ten idle seconds.
    public var processWorkerThreads: Int

    init(_ core: SessionCore) {
        runningCalls = core.runningCount
        pool = core.pool.snapshot
        var byOrigin: [String: Host] = [:]
        for (key, counts) in core.pool.hostCounts {
            let origin = SessionDiagnostics.origin(of: key)
            let host = byOrigin[origin] ?? Host(origin: origin)
            byOrigin[origin] = Host(
                origin: origin, idle: host.idle + counts.idle, leased: host.leased + counts.leased,
                dialing: host.dialing + counts.dialing, waiting: host.waiting + counts.waiting)
        }
        hosts = byOrigin.values.sorted { $0.origin < $1.origin }
        processSockets = core.loop.socketCount
        processTimers = core.loop.timerCount
        processWorkerThreads = BlockingThreadPool.shared.threadCount + InFlightLookups.system.threadCount
    }

    /// Whether the session is idle: no call runs or waits, and no connection is in use or being opened.
    public var isIdle: Bool { runningCalls == 0 && pool.leased == 0 && pool.dialing == 0 && pool.waiting == 0 }

    /// A description with one line for the session and one for each host.
    ///
    /// For example:
    /// ```
    /// 3 calls; 2 leased, 1 idle, 0 dialling, 1 waiting; process: 3 sockets, 4 timers, 1 worker threads
    /// https://example.com:443: 2 leased, 1 idle, 0 dialling, 1 waiting
    /// ```
    public var description: String {
        let all = Host(origin: "", idle: pool.idle, leased: pool.leased, dialing: pool.dialing, waiting: pool.waiting)
        let whole =
            "\(runningCalls) calls; \(all.counts); process: \(processSockets) sockets, \(processTimers) timers, "
            + "\(processWorkerThreads) worker threads"
        return ([whole] + hosts.map { "\($0.origin): \($0.counts)" }).joined(separator: "\n")
    }

    private static func origin(of key: ConnectionKey) -> String {
        let destination = key.destination
        // Connections to a forwarding proxy serve many origins.
        if let proxy = key.proxy, proxy.forwards(isSecure: destination.isSecure) { return "\(proxy)" }
        let name = destination.host.utf8.contains(UInt8(ascii: ":")) ? "[\(destination.host)]" : destination.host
        let place = "\(destination.isSecure ? "https" : "http")://\(name):\(destination.port)"
        return key.proxy.map { "\(place) through \($0)" } ?? place
    }
}
