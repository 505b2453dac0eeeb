public import MartletCore
public import MartletTransport
public import SystemPackage

/// How this machine is connected to the rest of the world, as an `AsyncSequence` of newest paths.
///
/// The first path comes as soon as the kernel has told it, which is at once; then one whenever it is another. A slow consumer
/// skips what it missed and is never queued for; iteration ends when its task is cancelled. Any number of tasks may iterate, and
/// as long as none does, nothing is open and nothing is looked at.
///
/// On Linux it is what the kernel tells over netlink (rtnetlink(7)) of the network namespace that the process is in. Where it
/// tells nothing, as in some containers, the only path is ``NetworkPath/unknown``, and all the rest of Martlet works as ever.
/// A change is told when it has come to rest for 200 ms, and not later than a second after it began, plus the time that the
/// kernel takes to answer.
///
/// ```swift
/// for await path in NetworkMonitor.system {
///     print(path.isSatisfied ? "online" : "offline", path.isExpensive ? "(expensive)" : "")
/// }
/// ```
///
/// A session that is given one (``SessionConfiguration/networkMonitor``) closes connections whose local address is gone, and
/// has its ``ConcurrencyPolicy`` follow the path. No request is ever held back or refused for what a path says.
public struct NetworkMonitor: AsyncSequence, Sendable {
    /// What iteration gives.
    public typealias Element = NetworkPath
    /// Iteration does not fail.
    public typealias Failure = Never

    /// What a monitor is told.
    public struct Options: Hashable, Sendable {
        /// Where the kernel's files about interfaces are, by which Wi-Fi and mobile networks are known; `/sys` by default.
        public var sysfs: FilePath

        /// What is said of interfaces in place of what the machine says of them, by their names; a star at the end of a name
        /// stands for any characters. Nothing by default.
        ///
        /// `["ppp*": .init(kind: .mobile), "wwan0": .init(isExpensive: false)]`
        public var interfaces: [String: InterfaceOverride]

        /// Options; what is not given has its default.
        public init(sysfs: FilePath = "/sys", interfaces: [String: InterfaceOverride] = [:]) {
            self.sysfs = sysfs
            self.interfaces = interfaces
        }
    }

    /// Where paths come from.
    enum Origin: Sendable {
        case watch(NetworkWatch)
        case manual(NewestValue<NetworkView>)
    }

    let origin: Origin
    /// Asks the kernel for single routes; `nil` where paths are set by hand.
    let kernel: KernelNetwork?

    /// The machine's, without options. All who iterate share what is open.
    public static let system = NetworkMonitor()

    /// A monitor of this machine's network.
    ///
    /// Copies share what is open. It is opened when somebody iterates.
    public init(_ options: Options = Options()) {
        let kernel = KernelNetwork(
            files: InterfaceFiles(root: options.sysfs.string),
            overrides: InterfaceOverrides(options.interfaces))
        self.kernel = kernel
        origin = .watch(NetworkWatch(loop: .sharedOrStalled, source: kernel))
    }

    init(_ value: NewestValue<NetworkView>) {
        kernel = nil
        origin = .manual(value)
    }

    /// The present path.
    ///
    /// Where nobody follows the monitor, the kernel is asked; else it is what was told last. When the task is cancelled
    /// before it is known, it is ``NetworkPath/unknown``.
    public var path: NetworkPath {
        get async {
            var iterator = makeAsyncIterator()
            return await iterator.next() ?? .unknown
        }
    }

    /// The conditions of the present path and of those that follow, for whoever does not need more.
    public var conditions: some AsyncSequence<NetworkCondition, Never> & Sendable {
        NetworkConditions(monitor: self)
    }

    /// One pass over the paths; what is open for it is closed when it is dropped, unless others need it.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate var views: ValueReader<NetworkView>
        fileprivate var last: NetworkPath?

        /// The newest path, once it is another than the one before; `nil` at the end, or when cancelled.
        public mutating func next() async -> NetworkPath? {
            while let view = await views.next() {
                if view.path != last {
                    last = view.path
                    return view.path
                }
            }
            return nil
        }

        /// The newest path, once it is another than the one before; `nil` at the end, or when cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> NetworkPath? {
            await next()
        }
    }

    /// A pass that begins with the present path.
    public func makeAsyncIterator() -> Iterator { Iterator(views: views) }

    /// A pass over all that is known of the network.
    package var views: ValueReader<NetworkView> {
        switch origin {
        case .watch(let watch): ValueReader(watch.subscription())
        case .manual(let value): ValueReader(value)
        }
    }

    /// Whether a socket is open for it.
    package var isListening: Bool {
        guard case .watch(let watch) = origin else { return false }
        return watch.isListening
    }
}

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
        timeout: Duration = .seconds(10), resolver: any Resolver = SystemResolver()
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
