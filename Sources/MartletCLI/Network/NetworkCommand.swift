import ArgumentParser
import Martlet

/// `martlet network`: the path of the network, and its changes.
struct NetworkCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "network", abstract: "Print the network path, and again whenever it changes",
        discussion: """
            A path is satisfied where a default route leads over an interface that is up, running and has a carrier, with an \
            address that reaches beyond the link. Names of interfaces may end in *, which stands for any characters. With \
            --json a line is an object.

            EXIT CODES:
            0: done
            2: a mistake on the command line
            23: what is to be printed cannot be written
            103: with --once, the path is not satisfied
            """)

    @Flag(help: "Print the present path, and end.") var once = false

    @Flag(help: "Go on until interrupted, which is what happens without --once.") var watch = false

    @Flag(help: "Print JSON.") var json = false

    @Option(
        help: ArgumentHelp(
            "Tell whether this host can be reached; may be repeated.", valueName: "host[:port]"))
    var host: [String] = []

    @Flag(help: "Make a connection to each host, port 443 unless it names another.") var probe = false

    @Option(help: ArgumentHelp("The folder that tells what interfaces are.", valueName: "dir"))
    var sysfs = "/sys"

    @Option(help: ArgumentHelp("Take an interface for expensive.", valueName: "name"))
    var expensive: [String] = []

    @Option(help: ArgumentHelp("Take an interface for not expensive, whatever it is.", valueName: "name"))
    var inexpensive: [String] = []

    mutating func validate() throws {
        if once && watch { throw ValidationError("options --once and --watch: one of them") }
        if probe && host.isEmpty { throw ValidationError("option --probe: takes a --host") }
        guard !sysfs.isEmpty, !sysfs.utf8.contains(0) else {
            throw ValidationError("option --sysfs: takes a folder")
        }
    }

    mutating func run() async throws {
        let hosts: [NetworkHost]
        do throws(HTTPURL.ParseError) {
            hosts = try host.map { text throws(HTTPURL.ParseError) in try NetworkHost(text) }
        } catch {
            await Console.report("option --host: \(error)")
            throw ExitStatus.usage
        }
        let overrides = expensive.map { ($0, true) } + inexpensive.map { ($0, false) }
        let interfaces = Dictionary(
            overrides.map { ($0, InterfaceOverride(isExpensive: $1)) }, uniquingKeysWith: { $1 })
        let monitor = NetworkMonitor(.init(sysfs: FilePath(sysfs), interfaces: interfaces))
        for await path in monitor {
            var report = NetworkReport(path)
            for host in hosts {
                let found = await monitor.currentReachability(
                    of: host.url, probe: probe ? .connection : .route)
                report.hosts.append((name: host.name, reachability: found))
            }
            try await Console.print(json ? report.members.jsonLine + "\n" : report.text)
            guard once else { continue }
            if path.status == .unsatisfied { throw ExitStatus.offline }
            return
        }
    }
}

/// A host whose reachability is reported.
struct NetworkHost: Sendable {
    /// The host as it was written.
    let name: String
    /// The URL that a connection would be made for.
    let url: HTTPURL

    /// Reads a name or an address, with or without a port; an IPv6 address with a port is in brackets.
    init(_ text: String) throws(HTTPURL.ParseError) {
        name = text
        let isBareLiteral = text.utf8.count { $0 == UInt8(ascii: ":") } > 1 && !text.hasPrefix("[")
        // The scheme gives the default port.
        url = try HTTPURL("https://\(isBareLiteral ? "[\(text)]" : text)/")
    }
}

/// A path and the reachability of hosts, for people and for programs.
struct NetworkReport: Sendable {
    private let path: NetworkPath
    /// The hosts of the command line, in order.
    var hosts: [(name: String, reachability: HostReachability)] = []

    init(_ path: NetworkPath) { self.path = path }

    /// For people: a line for the path, and for each interface and host.
    var text: String {
        let versions = [path.supportsIPv4 ? " IPv4" : "", path.supportsIPv6 ? " IPv6" : ""].joined()
        var lines = [path.status.rawValue + versions]
        for interface in path.interfaces {
            var words = [interface.kind.rawValue]
            if interface.isTunnel { words.append("tunnel") }
            if interface.isExpensive { words.append("expensive") }
            words += interface.addresses
            lines.append("  \(TerminalText.escaped(interface.name)): \(words.joined(separator: " "))")
        }
        for (name, reachability) in hosts {
            lines.append("  \(TerminalText.escaped(name)): \(TerminalText.escaped(reachability.description))")
        }
        return lines.joined(separator: "\n") + "\n"
    }

    var members: JSONMembers {
        let members: JSONMembers = [
            "status": path.status.rawValue, "kind": path.kind?.rawValue, "expensive": path.isExpensive,
            "ipv4": path.supportsIPv4, "ipv6": path.supportsIPv6,
            "interfaces": path.interfaces.map(NetworkReport.interface),
        ]
        return hosts.isEmpty ? members : members + ["hosts": hosts.map { NetworkReport.host($0, $1) }]
    }

    private static func host(_ name: String, _ reachability: HostReachability) -> JSONMembers {
        [
            "host": name, "status": reachability.status.rawValue, "address": reachability.address,
            "interface": reachability.interface?.name, "kind": reachability.interface?.kind.rawValue,
            "probed": reachability.isProbed,
        ]
    }

    private static func interface(_ interface: NetworkInterface) -> JSONMembers {
        [
            "name": interface.name, "index": interface.index, "kind": interface.kind.rawValue,
            "tunnel": interface.isTunnel, "expensive": interface.isExpensive,
            "addresses": interface.addresses,
        ]
    }
}
