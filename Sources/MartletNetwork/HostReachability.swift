import MartletCore
import MartletTransport

/// Whether a host can be reached from this machine, as far as was looked.
public struct HostReachability: Hashable, Codable, Sendable, CustomStringConvertible {
    /// Whether it can be reached.
    public enum Status: String, Hashable, Codable, Sendable, CaseIterable {
        /// There is a route to it, and where it was asked for, a connection was accepted.
        case reachable
        /// There is no route to any of its addresses, no address, or no connection.
        case unreachable
        /// It is not known: the kernel does not say, or the look was ended before it was over.
        case unknown
    }

    /// Whether it can be reached.
    public var status: Status

    /// The interface by which it is reached; `nil` where it is not, or the kernel does not say.
    public var interface: NetworkInterface?

    /// The address that was found to be reachable; `nil` for none.
    public var address: String?

    /// Whether a connection was made, and not the route alone looked at.
    public var isProbed: Bool

    /// Whether it can be reached, as far as is known.
    public var isReachable: Bool { status == .reachable }

    /// What was found.
    public init(
        _ status: Status, interface: NetworkInterface? = nil, address: String? = nil, isProbed: Bool = false
    ) {
        self.status = status
        self.interface = interface
        self.address = address
        self.isProbed = isProbed
    }

    /// Such as `reachable at 192.0.2.1 by wlan0 (wifi)`.
    public var description: String {
        var text = status.rawValue
        if let address { text += " at \(address)" }
        if let interface { text += " by \(interface.name) (\(interface.kind.rawValue))" }
        return text
    }
}

/// Whether a host can be reached, now and after each change of the path.
struct HostReachabilities: AsyncSequence, Sendable {
    typealias Element = HostReachability
    typealias Failure = Never

    let monitor: NetworkMonitor
    let check: HostCheck

    struct Iterator: AsyncIteratorProtocol {
        fileprivate var views: ValueReader<NetworkView>
        fileprivate let check: HostCheck
        fileprivate var last: HostReachability?

        mutating func next() async -> HostReachability? {
            while let view = await views.next() {
                let found = await check.run(on: view.path)
                if Task.isCancelled { return nil }
                if found != last {
                    last = found
                    return found
                }
            }
            return nil
        }

        mutating func next(isolation actor: isolated (any Actor)?) async -> HostReachability? { await next() }
    }

    func makeAsyncIterator() -> Iterator { Iterator(views: monitor.views, check: check) }
}

/// Finds out whether a host can be reached.
struct HostCheck: Sendable {
    /// More addresses of a host than these are not looked at: a name can have thousands.
    private static let addressLimit = 16

    let destination: Destination
    let probe: ReachabilityProbe
    let timeout: Duration
    /// Who is asked for routes; `nil` where the path has to do.
    let kernel: KernelNetwork?
    private let dialer: Dialer
    private let loop: EventLoop

    init(
        _ url: HTTPURL, probe: ReachabilityProbe, timeout: Duration, kernel: KernelNetwork?,
        resolver: any Resolver
    ) {
        destination = Destination(isSecure: false, host: url.host, port: url.port)
        self.probe = probe
        self.timeout = timeout
        self.kernel = kernel
        loop = .sharedOrStalled
        dialer = Dialer(settings: DialSettings(resolver: Identified(resolver)), loop: loop)
    }

    /// Looks, for as long as the time allows.
    func run(on path: NetworkPath) async -> HostReachability {
        let deadline = MonotonicTime.now().deadline(after: timeout)
        let addresses: [SocketAddress]
        do throws(DialError) {
            addresses = try await dialer.addresses(of: destination, until: deadline)
        } catch {
            if case .interrupted = error.cause { return HostReachability(.unknown) }
            return HostReachability(.unreachable)
        }
        let hosts = addresses.prefix(HostCheck.addressLimit).compactMap { IPAddress($0) }
        var found = await route(to: hosts, path)
        guard probe == .connection, found.status != .unreachable else { return found }
        do throws(DialError) {
            let connected = try await dialer.dial(destination, until: deadline)
            // What is there now is known, whatever the route was said to be.
            found.status = .reachable
            if let remote = connected.stream.information.remoteHost { found.address = remote }
            connected.stream.close()
        } catch {
            if case .interrupted = error.cause { return HostReachability(.unknown) }
            return HostReachability(.unreachable, isProbed: true)
        }
        found.isProbed = true
        return found
    }

    private func route(to addresses: [IPAddress], _ path: NetworkPath) async -> HostReachability {
        guard let first = addresses.first else { return HostReachability(.unreachable) }
        guard let kernel else {
            if let own = addresses.first(where: \.isLoopback) {
                return HostReachability(.reachable, address: own.description)
            }
            switch path.status {
            case .satisfied:
                return HostReachability(
                    .reachable, interface: path.interfaces.first, address: first.description)
            case .unsatisfied: return HostReachability(.unreachable)
            case .unknown: return HostReachability(.unknown)
            }
        }
        let answer = await NetworkWatch.workers.run { kernel.reach(addresses) }
        switch answer {
        case .reached(let address, let interface):
            return HostReachability(.reachable, interface: interface, address: address.description)
        case .unreachable: return HostReachability(.unreachable)
        case .unknown: return HostReachability(.unknown)
        }
    }
}

extension ConnectionInformation {
    /// The peer's address without its port; `nil` for a stream that has none.
    fileprivate var remoteHost: String? { IPAddress(socket: remoteAddress)?.description }
}

/// How it is found out whether a host can be reached.
public enum ReachabilityProbe: Hashable, Sendable {
    /// Its name is looked up and the kernel asked for a route; nothing is sent to the host.
    ///
    /// It tells that a way begins, and not where it ends.
    case route
    /// Besides, a connection is made to its port and closed; TLS is not spoken.
    case connection
}
