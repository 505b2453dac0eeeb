import Martlet

/// A path, and which hosts can be reached on it, as people and as programs read it.
struct NetworkReport: Sendable {
    private let path: NetworkPath
    /// The hosts that were asked about, in order.
    var hosts: [(name: String, reachability: HostReachability)] = []

    init(_ path: NetworkPath) {
        self.path = path
    }

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
                            .object([
                                ("host", .string(name)), ("status", .string(reachability.status.rawValue)),
                                ("address", .optional(reachability.address)),
                                ("interface", .optional(reachability.interface?.name)),
                                ("kind", .optional(reachability.interface?.kind.rawValue)),
                                ("probed", .bool(reachability.isProbed)),
                            ])
                        })
                ))
        }
        return JSONWriter.text(.object(members)) + "\n"
    }

    private static func json(_ interface: NetworkInterface) -> JSONValue {
        .object([
            ("name", .string(interface.name)), ("index", .number(interface.index)),
            ("kind", .string(interface.kind.rawValue)), ("tunnel", .bool(interface.isTunnel)),
            ("expensive", .bool(interface.isExpensive)),
            ("addresses", .array(interface.addresses.map { .string($0) })),
        ])
    }
}
