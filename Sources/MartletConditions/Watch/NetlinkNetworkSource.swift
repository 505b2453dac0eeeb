import CMartletLinux
import Glibc
import MartletStorage
import MartletTransport

/// The network, as the kernel describes it by rtnetlink(7), in the network namespace of the calling thread.
struct NetlinkNetworkSource: NetworkSource {
    /// The directory of the files that distinguish Wi-Fi and mobile networks from cables.
    var sysfs = "/sys"
    /// The properties that override those of the machine, by the interfaces' names.
    var overrides: [String: InterfaceOverride] = [:]

    func openEventSocket() throws(SystemError) -> Int32 {
        // Links, addresses and routes, both of IPv4 and IPv6.
        try NetlinkSocket.open(groups: 0x1 | 0x10 | 0x40 | 0x100 | 0x400, isBlocking: false)
    }

    func query() -> NetworkMonitorMachine.QueryOutcome {
        do throws(SystemError) {
            let descriptor = try NetlinkSocket.open(isBlocking: true)
            defer { close(descriptor) }
            guard let (table, isInterrupted) = try table(on: descriptor) else { return .failed }
            let view = NetworkSnapshot(path: rule(for: table).path, addresses: Set(table.addresses.map(\.address)))
            return isInterrupted ? .interrupted(view) : .seen(view)
        } catch { return NetworkMonitorMachine.QueryOutcome(error) }
    }

    /// Requests routes to addresses until one leads over an interface that is up and running. Blocks like ``query()``.
    func reachability(of addresses: [IPAddress]) -> HostReachability {
        do throws(SystemError) {
            let descriptor = try NetlinkSocket.open(isBlocking: true)
            defer { close(descriptor) }
            guard let (table, _) = try table(on: descriptor) else { return HostReachability(.unknown) }
            let rule = rule(for: table)
            var isKnown = true
            for (number, address) in addresses.enumerated() {
                // The number is higher than those of the requests for the table.
                switch try route(to: address, sequence: UInt32(clamping: number) &+ 100, on: descriptor) {
                case .route(let route):
                    if let hop = route.hops.first, let interface = rule.interface(of: hop.link) {
                        return HostReachability(.reachable, interface: interface, address: address.description)
                    }
                case .unreachable: break
                case .rejected: isKnown = false
                }
            }
            return HostReachability(isKnown ? .unreachable : .unknown)
        } catch { return HostReachability(.unknown) }
    }

    private func route(to address: IPAddress, sequence: UInt32, on descriptor: Int32) throws(SystemError) -> RouteReply
    {
        try NetlinkSocket.send(RouteReply.request(to: address, sequence: sequence), on: descriptor)
        switch NetlinkSocket.receive(on: descriptor) {
        case .datagram(let datagram): return (try? RouteReply(datagram, sequence: sequence)) ?? .rejected(EBADMSG)
        case .failed(let error): throw error
        case .lost, .nothing: return .rejected(ETIMEDOUT)
        }
    }

    /// Requests links, addresses and routes; `nil` if a response is malformed or missing.
    private func table(on descriptor: Int32) throws(SystemError) -> (NetworkTable, isInterrupted: Bool)? {
        var table = NetworkTable()
        var isInterrupted = false
        for (number, query) in NetlinkDump.Query.allCases.enumerated() {
            var dump = NetlinkDump(query, sequence: UInt32(number) + 2)
            try NetlinkSocket.send(dump.request, on: descriptor)
            var progress = NetlinkDump.Progress.more
            while progress == .more {
                switch NetlinkSocket.receive(on: descriptor) {
                case .datagram(let datagram):
                    guard let next = try? dump.receive(datagram, into: &table) else { return nil }
                    progress = next
                case .failed(let error): throw error
                case .lost, .nothing: return nil
                }
            }
            switch progress {
            case .done(true): isInterrupted = true
            // A kernel without an address family has no routes of that family.
            case .more, .done(false), .failed(EAFNOSUPPORT), .failed(EOPNOTSUPP): break
            case .failed(let code): throw SystemError(operation: "netlink", code: code)
            }
        }
        return (table, isInterrupted)
    }

    private func rule(for table: NetworkTable) -> NetworkPathRule {
        var traits: [UInt32: InterfaceTraits] = [:]
        for link in table.links where link.isRunning && !link.isLoopback {
            traits[link.index] = InterfaceTraits(of: link.name, index: link.index, sysfs: sysfs)
        }
        return NetworkPathRule(table, traits: traits, overrides: overrides)
    }
}

extension NetworkMonitorMachine.QueryOutcome {
    /// Creates the outcome of a failed call: some errors are permanent.
    init(_ error: SystemError) {
        switch error.code {
        case EPERM, EACCES, EAFNOSUPPORT, EPROTONOSUPPORT, EOPNOTSUPP, ENOSYS: self = .denied
        default: self = .failed
        }
    }
}

extension InterfaceTraits {
    /// Reads the properties of an interface from the kernel's files. The directory may show another network namespace
    /// than that of the process, with interfaces of the same names: an interface with another number has no properties.
    /// - Parameters:
    ///   - name: The name. The kernel's names contain no slash; other names have no properties.
    ///   - sysfs: The directory `/sys`, or one with the same structure; it need not exist.
    init(of name: String, index: UInt32, sysfs: String) {
        guard !name.isEmpty, name != ".", name != "..", !name.utf8.contains(where: { $0 == 0x2F || $0 == 0 }) else {
            return
        }
        let directory = "\(sysfs)/class/net/\(name)"
        if let number = KernelFile.bytes(of: "\(directory)/ifindex") {
            guard UInt32(String(decoding: number.prefix { $0 != 0x0A }, as: UTF8.self)) == index else { return }
        }
        isWireless = ["phy80211", "wireless"].contains { unsafe access("\(directory)/\($0)", F_OK) == 0 }
        deviceType = InterfaceTraits.deviceType(inEvent: KernelFile.bytes(of: "\(directory)/uevent") ?? [])
    }
}

/// A small text file of the kernel, such as those below `/proc` and `/sys`.
enum KernelFile {
    /// The maximum number of bytes. The kernel's files have a few hundred bytes; larger ones are other files.
    private static let byteLimit = 4096

    /// Returns the rest of the first line with a prefix; `nil` without such a line.
    static func text(after prefix: String, in bytes: [UInt8]) -> String? {
        bytes.split(separator: UInt8(ascii: "\n")).first { $0.starts(with: prefix.utf8) }.map {
            String(decoding: $0.dropFirst(prefix.utf8.count), as: UTF8.self)
        }
    }

    /// Returns the first bytes of a file; `nil` if it cannot be read.
    static func bytes(of path: String) -> [UInt8]? { try? FileReader(path: path).read(at: 0, limit: byteLimit) }
}
