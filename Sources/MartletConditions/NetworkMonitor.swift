public import MartletTransport
public import MartletURL
public import SystemPackage

/// The connectivity of this machine, as an `AsyncSequence` of the latest paths.
///
/// The first path is delivered immediately after the kernel's response, later paths after each change. A slow consumer
/// skips intermediate paths. Iteration ends when its task is cancelled. Any number of tasks may iterate. Without
/// iterations, nothing is open and the kernel is not queried.
///
/// On Linux it is the state of the process's network namespace, as the kernel reports it over netlink (rtnetlink(7)).
/// If the kernel reports nothing, as in some containers, the only path is ``NetworkPath/unknown``, and all other
/// features work as usual. A change is reported after 200 ms without further changes, and not later than a second after
/// the first one, plus the kernel's response time.
///
/// ```swift
/// for await path in NetworkMonitor.system {
///     print(path.isSatisfied ? "online" : "offline", "expensive:", path.isExpensive)
/// }
/// ```
///
/// A session with a monitor (``SessionConfiguration/networkMonitor``) closes connections whose local address was
/// removed, and its ``ConcurrencyPolicy`` follows the path. No request is delayed or rejected because of a path, unless
/// metered networks are not allowed (``MeteredNetworkPolicy``).
public struct NetworkMonitor: AsyncSequence, Sendable {
    /// The element of the sequence.
    public typealias Element = NetworkPath
    /// Iteration does not fail.
    public typealias Failure = Never

    /// The options of a monitor.
    public struct Options: Hashable, Sendable {
        /// The directory of the kernel's files that identify Wi-Fi and mobile networks; `/sys` by default.
        public var sysfs: FilePath
        /// The properties of interfaces that override the reported ones, by name; none by default. A star at the end of
        /// a name matches any characters: `["ppp*": .init(kind: .mobile), "wwan0": .init(isExpensive: false)]`
        public var interfaces: [String: InterfaceOverride]

        /// Creates options with the documented defaults.
        public init(sysfs: FilePath = "/sys", interfaces: [String: InterfaceOverride] = [:]) {
            (self.sysfs, self.interfaces) = (sysfs, interfaces)
        }
    }

    private let watch: NetworkPathMonitor?
    /// Requests single routes from the kernel; `nil` for paths that are set manually.
    private let kernel: NetlinkNetworkSource?
    /// Starts an iteration over the complete state of the network.
    package let views: @Sendable () -> ValueReader<NetworkSnapshot>
    /// The monitor of the machine, with default options. All iterations share its resources.
    public static let system = NetworkMonitor()

    /// Creates a monitor of this machine's network.
    ///
    /// Copies share its resources, which the first iteration opens.
    public init(_ options: Options = Options()) {
        let kernel = NetlinkNetworkSource(sysfs: options.sysfs.string, overrides: options.interfaces)
        let watch = NetworkPathMonitor(loop: .sharedOrStalled, source: kernel)
        (self.kernel, self.watch) = (kernel, watch)
        views = { ValueReader(watch.subscription()) }
    }

    init(_ value: CurrentValue<NetworkSnapshot>) {
        (kernel, watch) = (nil, nil)
        views = { ValueReader(value) }
    }

    /// The current path.
    ///
    /// During an iteration it is the latest reported path; otherwise the kernel is queried. If the task is cancelled
    /// before the path is known, it is ``NetworkPath/unknown``.
    public var path: NetworkPath {
        get async {
            var iterator = makeAsyncIterator()
            return await iterator.next() ?? .unknown
        }
    }

    /// The conditions of the current path and of those that follow.
    public var conditions: some AsyncSequence<NetworkCondition, Never> & Sendable {
        NetworkChanges(monitor: self) { $0.path.condition }
    }

    /// An iteration over the paths. When it is released, its resources are closed, unless others need them.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate var paths: NetworkChanges<NetworkPath>.Iterator

        /// Returns the latest path, once it differs from the previous one; `nil` at the end, or when cancelled.
        public mutating func next() async -> NetworkPath? { await paths.next() }

        /// Returns the latest path, once it differs from the previous one; `nil` at the end, or when cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> NetworkPath? { await paths.next() }
    }

    /// Returns an iteration that begins with the current path.
    public func makeAsyncIterator() -> Iterator {
        Iterator(paths: NetworkChanges(monitor: self) { $0.path }.makeAsyncIterator())
    }

    package var isListening: Bool { watch?.isListening ?? false }

    /// Returns the reachability of a host, as an `AsyncSequence` of the latest values: the first as soon as it is
    /// known, then one after each change of the path that changes the reachability.
    ///
    /// The host itself is checked: proxies are not used.
    /// - Parameters:
    ///   - url: A URL with the host, and with the port for ``ReachabilityProbe/connection``.
    ///   - probe: The kind of check; by default nothing is sent to the host.
    ///   - timeout: The timeout of the whole check; 10 s by default. After it the host counts as unreachable.
    ///   - resolver: The resolver of the name; the system's by default.
    public func reachability(
        of url: HTTPURL, probe: ReachabilityProbe = .route, timeout: Duration = .seconds(10),
        resolver: any Resolver = SystemResolver()
    ) -> some AsyncSequence<HostReachability, Never> & Sendable {
        let check = HostCheck(url, probe: probe, timeout: timeout, kernel: kernel, resolver: resolver)
        return NetworkChanges(monitor: self) { view in
            let found = await check.run(on: view.path)
            return Task.isCancelled ? nil : found
        }
    }

    /// Returns the reachability of a host by its name or address; see ``reachability(of:probe:timeout:resolver:)``.
    /// - Parameters:
    ///   - host: A name or an address literal, without a port; brackets around an IPv6 address are optional.
    ///   - port: The port for ``ReachabilityProbe/connection``; 1–65535, 443 by default.
    /// - Throws: The error of a host that is neither a name nor an address.
    public func reachability(
        ofHost host: String, port: Int = 443, probe: ReachabilityProbe = .route, timeout: Duration = .seconds(10),
        resolver: any Resolver = SystemResolver()
    ) throws(HTTPURL.ParseError) -> some AsyncSequence<HostReachability, Never> & Sendable {
        let isBareLiteral = host.utf8.contains(UInt8(ascii: ":")) && !host.hasPrefix("[")
        let url = try HTTPURL("http://\(isBareLiteral ? "[\(host)]" : host):\(port)/")
        return reachability(of: url, probe: probe, timeout: timeout, resolver: resolver)
    }

    /// Returns the current reachability of a host; ``HostReachability/Status/unknown`` if the task is cancelled first.
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
