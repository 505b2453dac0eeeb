package import MartletTransport
import CLinux
import Glibc

/// The network as the kernel tells of it (rtnetlink(7)), in the network namespace of the thread that asks.
package struct KernelNetwork: NetworkSource {
    private let files: InterfaceFiles
    private let overrides: InterfaceOverrides

    /// What is known of the network by the kernel.
    /// - Parameters:
    ///   - files: What tells Wi-Fi and mobile networks from cables.
    ///   - overrides: What is said in place of that.
    package init(
        files: InterfaceFiles = InterfaceFiles(), overrides: InterfaceOverrides = InterfaceOverrides()
    ) {
        self.files = files
        self.overrides = overrides
    }

    /// Links, addresses and routes, both of IPv4 and IPv6.
    private static let groups: UInt32 = 0x1 | 0x10 | 0x40 | 0x100 | 0x400

    package func openNews() throws(SystemError) -> Int32 {
        try NetlinkSocket.open(groups: KernelNetwork.groups, isBlocking: false)
    }

    package func matters(_ datagram: [UInt8]) -> Bool { NetlinkNewsRule.matters(datagram[...]) }

    package func look() -> NetworkMonitorMachine.Look {
        do throws(SystemError) {
            let descriptor = try NetlinkSocket.open(isBlocking: true)
            defer { close(descriptor) }
            guard let (table, isInterrupted) = try table(on: descriptor) else { return .failed }
            let view = view(of: table)
            return isInterrupted ? .interrupted(view) : .seen(view)
        } catch {
            return NetworkMonitorMachine.Look(error)
        }
    }

    /// Whether one of several addresses can be reached.
    package enum Reach: Hashable, Sendable {
        /// The first that can be, and the interface it is reached by.
        case reached(IPAddress, NetworkInterface)
        /// None can be.
        case unreachable
        /// The kernel does not say.
        case unknown
    }

    /// Asks for the routes to addresses, one after the other, until one leads over an interface that is up and running.
    ///
    /// It blocks as ``look()`` does.
    package func reach(_ addresses: [IPAddress]) -> Reach {
        do throws(SystemError) {
            let descriptor = try NetlinkSocket.open(isBlocking: true)
            defer { close(descriptor) }
            guard let (table, _) = try table(on: descriptor) else { return .unknown }
            let rule = NetworkPathRule(table, traits: traits(of: table), overrides: overrides)
            var isKnown = true
            for (number, address) in addresses.enumerated() {
                // Behind the numbers of what was asked for all of it.
                switch try route(to: address, sequence: UInt32(clamping: number) &+ 100, on: descriptor) {
                case .route(let route):
                    if let hop = route.hops.first, let interface = rule.interface(of: hop.link) {
                        return .reached(address, interface)
                    }
                case .unreachable: break
                case .refused: isKnown = false
                }
            }
            return isKnown ? .unreachable : .unknown
        } catch {
            return .unknown
        }
    }

    private func route(
        to address: IPAddress, sequence: UInt32, on descriptor: Int32
    ) throws(SystemError) -> RouteAnswer {
        try NetlinkSocket.send(NetlinkRequest.route(to: address, sequence: sequence), on: descriptor)
        switch NetlinkSocket.receive(on: descriptor) {
        case .datagram(let datagram):
            return (try? RouteAnswer(datagram, sequence: sequence)) ?? .refused(EBADMSG)
        case .failed(let error): throw error
        case .lost, .nothing: return .refused(ETIMEDOUT)
        }
    }

    /// Asks for all; `nil` where an answer made no sense.
    private func table(on descriptor: Int32) throws(SystemError) -> (NetworkTable, isInterrupted: Bool)? {
        var table = NetworkTable()
        var isInterrupted = false
        for (number, question) in NetlinkDump.Question.allCases.enumerated() {
            var dump = NetlinkDump(question, sequence: UInt32(number) + 2)
            try NetlinkSocket.send(dump.request, on: descriptor)
            receiving: while true {
                switch NetlinkSocket.receive(on: descriptor) {
                case .datagram(let datagram):
                    guard let progress = try? dump.receive(datagram, into: &table) else { return nil }
                    switch progress {
                    case .more: continue
                    case .done(let wasInterrupted):
                        isInterrupted = isInterrupted || wasInterrupted
                        break receiving
                    case .failed(let code):
                        // A kernel without a family has none of its routes.
                        guard code == EAFNOSUPPORT || code == EOPNOTSUPP else {
                            throw SystemError(operation: "netlink", code: code)
                        }
                        break receiving
                    }
                case .failed(let error): throw error
                case .lost, .nothing: return nil
                }
            }
        }
        return (table, isInterrupted)
    }

    private func view(of table: NetworkTable) -> NetworkView {
        let rule = NetworkPathRule(table, traits: traits(of: table), overrides: overrides)
        return NetworkView(path: rule.path, addresses: table.heldAddresses)
    }

    /// What the files say of the links that a path can lead over.
    private func traits(of table: NetworkTable) -> [UInt32: InterfaceTraits] {
        var traits: [UInt32: InterfaceTraits] = [:]
        for link in table.links where link.isRunning && !link.isLoopback {
            traits[link.index] = files.traits(of: link.name, index: link.index)
        }
        return traits
    }
}

extension NetworkMonitorMachine.Look {
    /// What a failed call amounts to: some say that it will never succeed.
    init(_ error: SystemError) {
        switch error.code {
        case EPERM, EACCES, EAFNOSUPPORT, EPROTONOSUPPORT, EOPNOTSUPP, ENOSYS: self = .refused
        default: self = .failed
        }
    }
}
