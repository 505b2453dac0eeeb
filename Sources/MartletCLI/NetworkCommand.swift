import ArgumentParser
import Martlet

struct NetworkCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "network", abstract: "Print the network path, and each change",
        discussion: """
            A path is satisfied if a default route uses an interface that is up, running, has a carrier, and has an \
            address that is not link-local. An interface name may end in *, which matches any characters. With --json \
            each line is an object.

            EXIT CODES:
            0: done
            2: a mistake on the command line
            23: the output cannot be written
            103: with --once, the path is not satisfied
            """)

    @Flag(help: "Print the current path, and end") var once = false

    @Flag(help: "Print changes until interrupted, the default") var watch = false

    @Flag(help: "Print JSON") var json = false

    @Option(help: ArgumentHelp("Print whether this host is reachable; can be repeated", valueName: "host[:port]"))
    var host: [String] = []

    @Flag(help: "Connect to each host, port 443 by default") var probe = false

    @Option(help: ArgumentHelp("Read properties of interfaces from this directory", valueName: "dir")) var sysfs =
        "/sys"

    @Option(help: ArgumentHelp("Treat an interface as expensive", valueName: "name")) var expensive: [String] = []

    @Option(help: ArgumentHelp("Treat an interface as not expensive", valueName: "name")) var inexpensive: [String] = []

    mutating func validate() throws {
        if once && watch { throw ValidationError("options --once and --watch: give only one of them") }
        if probe && host.isEmpty { throw ValidationError("option --probe: needs --host") }
        guard !sysfs.isEmpty, !sysfs.utf8.contains(0) else {
            throw ValidationError("option --sysfs: needs a directory")
        }
    }

    mutating func run() async throws {
        let urls: [HTTPURL]
        do throws(HTTPURL.ParseError) { urls = try host.map(NetworkCommand.url) } catch {
            throw await UsageError("option --host: \(error)").printMessage()
        }
        let overrides = expensive.map { ($0, true) } + inexpensive.map { ($0, false) }
        let interfaces = Dictionary(
            overrides.map { ($0, InterfaceOverride(isExpensive: $1)) }, uniquingKeysWith: { $1 })
        let monitor = NetworkMonitor(.init(sysfs: FilePath(sysfs), interfaces: interfaces))
        for await path in monitor {
            var report = NetworkReport(path: path)
            for (name, url) in zip(host, urls) {
                let found = await monitor.currentReachability(of: url, probe: probe ? .connection : .route)
                report.hosts.append((name, found))
            }
            try await Console.print(json ? report.members.jsonLine + "\n" : report.text)
            guard once else { continue }
            if path.status == .unsatisfied { throw ExitStatus.offline }
            return
        }
    }

    /// The URL of a host name or address with an optional port. An IPv6 address needs brackets only before a port.
    private static func url(_ host: String) throws(HTTPURL.ParseError) -> HTTPURL {
        let isBareLiteral = host.utf8.count { $0 == UInt8(ascii: ":") } > 1 && !host.hasPrefix("[")
        // The scheme gives the default port.
        return try HTTPURL("https://\(isBareLiteral ? "[\(host)]" : host)/")
    }
}

/// A path and the reachability of hosts, as readable text and as JSON.
struct NetworkReport: Sendable {
    let path: NetworkPath
    var hosts: [(name: String, reachability: HostReachability)] = []

    /// The text form: a line for the path, and one for each interface and host.
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
            "tunnel": interface.isTunnel, "expensive": interface.isExpensive, "addresses": interface.addresses,
        ]
    }
}
