import MartletTransport
import MartletURL

/// The result of checking the reachability of a host from this machine.
public struct HostReachability: Hashable, Codable, Sendable, CustomStringConvertible {
    /// The status of a host.
    public enum Status: String, Hashable, Codable, Sendable, CaseIterable {
        /// There is a route to the host, and it accepted a connection if one was requested.
        case reachable
        /// The host has no address, there is no route to its addresses, or the connection failed.
        case unreachable
        /// The status is not known: the kernel gives no information, or the check was cancelled.
        case unknown
    }

    /// The status of the host.
    public var status: Status
    /// The interface of the route; `nil` without a route, or if the kernel gives no information.
    public var interface: NetworkInterface?
    /// The reachable address; `nil` for none.
    public var address: String?
    /// Whether a connection was attempted, in addition to the check of the route.
    public var isProbed: Bool

    /// Whether the host is known to be reachable.
    public var isReachable: Bool { status == .reachable }

    /// Creates a result.
    public init(_ status: Status, interface: NetworkInterface? = nil, address: String? = nil, isProbed: Bool = false) {
        (self.status, self.interface, self.address, self.isProbed) = (status, interface, address, isProbed)
    }

    /// A text such as `reachable at 192.0.2.1 by wlan0 (wifi)`.
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
        (self.probe, self.timeout, self.kernel) = (probe, timeout, kernel)
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
            // A connection proves that the host is reachable, regardless of the route.
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
    /// Only the first hop of the route is checked.
    case route
    /// In addition, connects to the host's port and closes the connection, without TLS.
    case connection
}
