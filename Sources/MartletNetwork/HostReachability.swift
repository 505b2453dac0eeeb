import MartletCore
import MartletTransport

/// The reachability of a host from this machine, as far as it was checked.
public struct HostReachability: Hashable, Codable, Sendable, CustomStringConvertible {
    /// The status of a host.
    public enum Status: String, Hashable, Codable, Sendable, CaseIterable {
        /// There is a route to the host, and it accepted a connection if one was requested.
        case reachable
        /// There is no route to any of its addresses, no address, or no connection.
        case unreachable
        /// It is not known: the kernel gives no information, or the check was cancelled.
        case unknown
    }

    /// The status.
    public var status: Status
    /// The interface of the route; `nil` if there is none, or the kernel gives no information.
    public var interface: NetworkInterface?
    /// The reachable address; `nil` for none.
    public var address: String?
    /// Whether a connection was attempted, and not only the route checked.
    public var isProbed: Bool

    /// Whether the host is reachable, as far as is known.
    public var isReachable: Bool { status == .reachable }

    /// Creates a result.
    public init(_ status: Status, interface: NetworkInterface? = nil, address: String? = nil, isProbed: Bool = false) {
        self.status = status
        self.interface = interface
        self.address = address
        self.isProbed = isProbed
    }

    /// For example `reachable at 192.0.2.1 by wlan0 (wifi)`.
    public var description: String {
        var text = status.rawValue
        if let address { text += " at \(address)" }
        if let interface { text += " by \(interface.name) (\(interface.kind.rawValue))" }
        return text
    }
}

struct HostCheck: Sendable {
    /// The maximum number of checked addresses: a name can have thousands.
    private static let addressLimit = 16

    private let destination: Destination
    private let probe: ReachabilityProbe
    private let timeout: Duration
    /// The source of routes; `nil` to use the path instead.
    private let kernel: NetlinkNetworkSource?
    private let dialer: Dialer

    init(
        _ url: HTTPURL, probe: ReachabilityProbe, timeout: Duration, kernel: NetlinkNetworkSource?,
        resolver: any Resolver
    ) {
        destination = Destination(isSecure: false, host: url.host, port: url.port)
        self.probe = probe
        self.timeout = timeout
        self.kernel = kernel
        dialer = Dialer(settings: DialSettings(resolver: Identified(resolver)), loop: .sharedOrStalled)
    }

    func run(on path: NetworkPath) async -> HostReachability {
        let deadline = MonotonicTime.now().deadline(after: timeout)
        var isProbed = false
        do throws(DialError) {
            let addresses = try await dialer.addresses(of: destination, until: deadline)
            let hosts = addresses.prefix(HostCheck.addressLimit).compactMap { IPAddress($0) }
            var found = await route(to: hosts, path)
            guard probe == .connection, found.status != .unreachable else { return found }
            isProbed = true
            let stream = try await dialer.dial(destination, until: deadline).stream
            // A connection proves that the host is reachable, whatever the route.
            found.status = .reachable
            found.address = IPAddress(socket: stream.information.remoteAddress)?.description ?? found.address
            found.isProbed = true
            stream.close()
            return found
        } catch {
            if case .interrupted = error.cause { return HostReachability(.unknown) }
            return HostReachability(.unreachable, isProbed: isProbed)
        }
    }

    private func route(to addresses: [IPAddress], _ path: NetworkPath) async -> HostReachability {
        guard let first = addresses.first else { return HostReachability(.unreachable) }
        if let kernel { return await NetworkPathMonitor.workers.run { kernel.reachability(of: addresses) } }
        if let own = addresses.first(where: \.isLoopback) {
            return HostReachability(.reachable, address: own.description)
        }
        switch path.status {
        case .satisfied:
            return HostReachability(.reachable, interface: path.interfaces.first, address: first.description)
        case .unsatisfied: return HostReachability(.unreachable)
        case .unknown: return HostReachability(.unknown)
        }
    }
}

/// The kind of a reachability check.
public enum ReachabilityProbe: Hashable, Sendable {
    /// Resolves the name and requests a route from the kernel; nothing is sent to the host.
    ///
    /// It checks the beginning of a route, and not the end.
    case route
    /// In addition, connects to the host's port and closes the connection, without TLS.
    case connection
}
