import MartletTransport

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
