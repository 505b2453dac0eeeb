import ArgumentParser
import Martlet
import SystemPackage

/// `martlet network`: what the path of the network is, and what becomes of it.
struct NetworkCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "network", abstract: "Print the network path, and again whenever it changes.",
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
            await Console.complain("martlet: option --host: \(error)\n")
            throw ExitStatus.usage
        }
        var interfaces: [String: InterfaceOverride] = [:]
        for name in expensive { interfaces[name] = InterfaceOverride(isExpensive: true) }
        for name in inexpensive { interfaces[name] = InterfaceOverride(isExpensive: false) }
        let monitor = NetworkMonitor(.init(sysfs: FilePath(sysfs), interfaces: interfaces))
        for await path in monitor {
            var report = NetworkReport(path)
            for host in hosts {
                let found = await monitor.currentReachability(
                    of: host.url, probe: probe ? .connection : .route)
                report.hosts.append((name: host.name, reachability: found))
            }
            try await Console.print(json ? report.line : report.text)
            guard once else { continue }
            if path.status == .unsatisfied { throw ExitStatus.offline }
            return
        }
    }
}

/// A host that is asked about.
struct NetworkHost: Sendable {
    /// As it was written.
    let name: String
    /// Where a connection would be made to.
    let url: HTTPURL

    /// A host as it is written: a name or an address, with a port or without; an address of IPv6 with a port has brackets.
    init(_ text: String) throws(HTTPURL.ParseError) {
        name = text
        let isBareLiteral = text.utf8.count { $0 == UInt8(ascii: ":") } > 1 && !text.hasPrefix("[")
        // The scheme is for the port that is meant where none is written.
        url = try HTTPURL("https://\(isBareLiteral ? "[\(text)]" : text)/")
    }
}

/// A path, and which hosts can be reached on it, as people and as programs read it.
struct NetworkReport: Sendable {
    private let path: NetworkPath
    /// The hosts that were asked about, in order.
    var hosts: [(name: String, reachability: HostReachability)] = []

    init(_ path: NetworkPath) { self.path = path }

    /// For people: the path on one line, its interfaces and the hosts on lines of their own.
    var text: String {
        var versions: [String] = []
        if path.supportsIPv4 { versions.append("IPv4") }
        if path.supportsIPv6 { versions.append("IPv6") }
        var lines = [([path.status.rawValue] + versions).joined(separator: " ")]
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

    /// For programs: one object on one line.
    var line: String {
        var members: [(String, JSONValue)] = [
            ("status", .string(path.status.rawValue)), ("kind", .optional(path.kind?.rawValue)),
            ("expensive", .bool(path.isExpensive)), ("ipv4", .bool(path.supportsIPv4)),
            ("ipv6", .bool(path.supportsIPv6)),
            ("interfaces", .array(path.interfaces.map(NetworkReport.json))),
        ]
        if !hosts.isEmpty {
            members.append(
                (
                    "hosts",
                    .array(
                        hosts.map { name, reachability in
                            .members([
                                ("host", .string(name)), ("status", .string(reachability.status.rawValue)),
                                ("address", .optional(reachability.address)),
                                ("interface", .optional(reachability.interface?.name)),
                                ("kind", .optional(reachability.interface?.kind.rawValue)),
                                ("probed", .bool(reachability.isProbed)),
                            ])
                        })
                ))
        }
        return JSONLine.text(.members(members)) + "\n"
    }

    private static func json(_ interface: NetworkInterface) -> JSONValue {
        .members([
            ("name", .string(interface.name)), ("index", .number(interface.index)),
            ("kind", .string(interface.kind.rawValue)), ("tunnel", .bool(interface.isTunnel)),
            ("expensive", .bool(interface.isExpensive)),
            ("addresses", .array(interface.addresses.map { .string($0) })),
        ])
    }
}
