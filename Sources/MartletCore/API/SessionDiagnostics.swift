public import MartletConnections
import MartletTransport

/// What a session, and the process around it, hold at one moment: for logs, health pages, and tests that look for leaks.
///
/// The parts are read one after the other while calls go on, so that their sums may be off by a call or two.
public struct SessionDiagnostics: Hashable, Sendable, CustomStringConvertible {
    /// The part of a host: of all connections of one scheme, name and port, however they were opened.
    public struct Host: Hashable, Sendable {
        /// Scheme, name and port, such as `https://example.com:443`; behind them the proxy whose tunnel leads there, as in
        /// `https://example.com:443 through http://proxy.example:3128`. A proxy that requests are handed to stands for
        /// itself.
        public var origin: String
        /// Connections that are open and free.
        public var idle: Int
        /// Connections in use.
        public var leased: Int
        /// Connections being opened, those given up but not yet ended included.
        public var dialling: Int
        /// Requests that wait for a connection.
        public var waiting: Int

        /// The part of a host; what is not given is none.
        public init(origin: String, idle: Int = 0, leased: Int = 0, dialling: Int = 0, waiting: Int = 0) {
            self.origin = origin
            self.idle = idle
            self.leased = leased
            self.dialling = dialling
            self.waiting = waiting
        }
    }

    /// Calls that have begun and not ended, in the session and its views.
    public var runningCalls: Int
    /// The connections of the session and its views by what they do, and the requests that wait for one.
    public var pool: PoolStatus
    /// Each host with a connection or a request that waits, in the order of their names.
    public var hosts: [Host]
    /// Sockets that Martlet has open in this process, whichever session they belong to.
    public var processSockets: Int
    /// Timers that are armed in this process; those that came to nothing count until they are swept out.
    public var processTimers: Int
    /// Threads for calls that block, such as name resolution, in this process; they end after ten idle seconds.
    public var processWorkerThreads: Int

    init(_ core: SessionCore) {
        runningCalls = core.runningCount
        pool = core.pool.snapshot
        var byOrigin: [String: Host] = [:]
        for (key, counts) in core.pool.hostCounts {
            let origin = SessionDiagnostics.origin(of: key)
            var host = byOrigin[origin] ?? Host(origin: origin)
            host.idle += counts.idle
            host.leased += counts.leased
            host.dialling += counts.dialling
            host.waiting += counts.waiting
            byOrigin[origin] = host
        }
        hosts = byOrigin.values.sorted { $0.origin < $1.origin }
        processSockets = core.loop.socketCount
        processTimers = core.loop.timerCount
        processWorkerThreads = BlockingWorkers.shared.threadCount + LookUps.system.threadCount
    }

    /// Whether the session does nothing: no call runs or waits, and no connection is in use or being opened.
    public var isQuiet: Bool {
        runningCalls == 0 && pool.leased == 0 && pool.dialling == 0 && pool.waiting == 0
    }

    /// A line for the whole and one for each host.
    ///
    /// For example:
    /// ```
    /// 3 calls; 2 leased, 1 idle, 0 dialling, 1 waiting; process: 3 sockets, 4 timers, 1 worker threads
    /// https://example.com:443: 2 leased, 1 idle, 0 dialling, 1 waiting
    /// ```
    public var description: String {
        let whole =
            "\(runningCalls) calls; \(pool.leased) leased, \(pool.idle) idle, \(pool.dialling) dialling, "
            + "\(pool.waiting) waiting; process: \(processSockets) sockets, \(processTimers) timers, "
            + "\(processWorkerThreads) worker threads"
        let lines = hosts.map { host in
            "\(host.origin): \(host.leased) leased, \(host.idle) idle, \(host.dialling) dialling, "
                + "\(host.waiting) waiting"
        }
        return ([whole] + lines).joined(separator: "\n")
    }

    private static func origin(of key: ConnectionKey) -> String {
        let destination = key.destination
        // Where requests are handed to the proxy, it is the place itself.
        if let proxy = key.proxy, proxy.forwards(isSecure: destination.isSecure) { return "\(proxy)" }
        let name =
            destination.host.utf8.contains(UInt8(ascii: ":")) ? "[\(destination.host)]" : destination.host
        let place = "\(destination.isSecure ? "https" : "http")://\(name):\(destination.port)"
        return key.proxy.map { "\(place) through \($0)" } ?? place
    }
}
