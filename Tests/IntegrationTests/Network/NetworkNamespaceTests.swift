import Foundation
import Testing

@Suite(
    "Network path in network namespaces",
    .enabled("the kernel allows no network namespace with virtual links here") {
        await NetworkNamespace.isAllowed
    })
struct NetworkNamespaceTests {
    private func following(
        _ options: [String] = [], _ body: (NetworkNamespace, PathFollower) async throws -> Void
    ) async throws {
        try await NetworkNamespace.withNamespace { namespace in
            try await namespace.with([Program.path, "network", "--watch", "--json"] + options) { child in
                let follower = PathFollower(child: child)
                let first = try await follower.line(1)
                #expect(first.status == "satisfied")
                #expect(first.interfaces.first?.addresses == ["10.9.0.1"])
                try await body(namespace, follower)
            }
        }
    }

    /// Makes a change and waits for the line that it causes; returns the duration.
    private func line(
        _ count: Int, after what: String, _ follower: PathFollower, _ body: () async throws -> Void
    ) async throws -> PathFollower.Line {
        try await body()
        let start = ContinuousClock.now
        let line = try await follower.line(count)
        print("network: \(what) is reported after \(ContinuousClock.now - start), in steps of 5 ms")
        return line
    }

    @Test("A link that goes down ends the path, and its return restores it, with one event each")
    func linkDown() async throws {
        try await following { namespace, follower in
            var count = 1
            for _ in 0..<2 {
                count += 1
                let down = try await line(count, after: "a link going down", follower) {
                    try await namespace.ip("link", "set", "v0", "down")
                }
                #expect(down.status == "unsatisfied")
                #expect(down.interfaces.isEmpty)
                count += 1
                let up = try await line(count, after: "a link coming back", follower) {
                    // The route was removed with the link, without a message.
                    let script =
                        "ip link set v0 up && ip route add default via 10.9.0.2 dev v0"
                    try await namespace.run("sh", "-c", script)
                }
                #expect(up.status == "satisfied")
            }
            #expect(
                try follower.statuses == [
                    "satisfied", "unsatisfied", "satisfied", "unsatisfied", "satisfied",
                ])
        }
    }

    @Test(
        "A lost carrier ends the path even if the route stays, and its return restores it, one event each"
    )
    func carrier() async throws {
        try await following { namespace, follower in
            let lost = try await line(2, after: "a lost carrier", follower) {
                try await namespace.ip("link", "set", "v1", "down")
            }
            #expect(lost.status == "unsatisfied")
            #expect(try await namespace.run("ip", "route").contains("default via 10.9.0.2"))
            let back = try await line(3, after: "a carrier that is back", follower) {
                try await namespace.ip("link", "set", "v1", "up")
            }
            #expect(back.status == "satisfied")
            try await namespace.ip("link", "set", "v0", "down")
            try await follower.line(4)
            #expect(try follower.statuses == ["satisfied", "unsatisfied", "satisfied", "unsatisfied"])
        }
    }

    @Test("A removed address ends the path, and a new one is reported")
    func address() async throws {
        try await following { namespace, follower in
            try await namespace.ip("addr", "add", "10.9.0.3/24", "dev", "v0")
            #expect(try await follower.line(2).interfaces.first?.addresses == ["10.9.0.1", "10.9.0.3"])
            try await namespace.run(
                "sh", "-c", "ip addr del 10.9.0.3/24 dev v0; ip addr del 10.9.0.1/24 dev v0")
            try await follower.newest("the end") { $0.status == "unsatisfied" }
        }
    }

    /// A helper program of the tests, if it was built with them.
    private static let child = URL(filePath: Program.path).deletingLastPathComponent()
        .appending(path: "MartletClientChild").path

    @Test(
        "Connections from a removed address are closed, and the call on one of them fails",
        .enabled(
            if: FileManager.default.isExecutableFile(atPath: child), "the tests' own program was not built"))
    func connections() async throws {
        try await NetworkNamespace.withNamespace { namespace in
            try await namespace.ip("addr", "add", "10.9.0.5/32", "dev", "lo")
            try await namespace.with([Self.child, "address", "10.9.0.5"]) { child in
                try await child.waitForOutput("open")
                #expect(!child.output.contains("lost"))
                try await namespace.ip("addr", "del", "10.9.0.5/32", "dev", "lo")
                try await child.waitForOutput("closed")
                #expect(child.output.contains("lost: connectionLost"))
                #expect(child.output.contains("its local address was removed"))
            }
        }
    }

    @Test("A default route that moves to another link is one event, and its removal ends the path")
    func route() async throws {
        try await following { namespace, follower in
            try await namespace.addPair("w0", "w1", address: "10.8.0.1/24")
            try await namespace.ip("route", "replace", "default", "via", "10.8.0.2", "dev", "w0")
            #expect(try await follower.line(2).interfaces.map(\.name) == ["w0"])
            // Routes to networks cause no event.
            try await namespace.ip("route", "add", "10.7.0.0/16", "via", "10.8.0.2")
            try await namespace.ip("route", "del", "default")
            #expect(try await follower.line(3).status == "unsatisfied")
            #expect(try follower.lines.count == 3)
        }
    }

    @Test("IPv6 without IPv4 is a path, after the duplicate address detection")
    func ipv6() async throws {
        try await following { namespace, follower in
            try await namespace.ip("route", "del", "default")
            try await follower.line(2)
            try await namespace.ip("-6", "addr", "add", "fd09::1/64", "dev", "v0")
            try await namespace.ip("-6", "route", "add", "default", "via", "fd09::2", "dev", "v0")
            let line = try await follower.line(3)
            #expect(line.status == "satisfied")
            #expect(line.interfaces.first?.addresses == ["10.9.0.1", "fd09::1"])
        }
    }

    @Test(
        "After fifty carrier changes the path is correct, and no two successive events are equal")
    func flapping() async throws {
        try await following { namespace, follower in
            let script = """
                i=0
                while [ $i -lt 50 ]; do ip link set v1 down; ip link set v1 up; i=$((i+1)); done
                ip addr add 10.9.0.77/24 dev v0
                """
            try await namespace.run("sh", "-c", script)
            try await follower.newest("the last address") { $0.interfaces.first?.addresses.count == 2 }
            try await namespace.ip("link", "set", "v1", "down")
            try await follower.newest("the end") { $0.status == "unsatisfied" }
            let statuses = try follower.statuses
            #expect(statuses.count <= 103)
            let lines = try follower.lines
            for (line, next) in zip(lines, lines.dropFirst()) {
                #expect(
                    line.status != next.status
                        || line.interfaces.first?.addresses != next.interfaces.first?.addresses)
            }
        }
    }

    @Test(
        "The sysfs directory of an interface decides its type: Wi-Fi, an expensive mobile network, or a cable",
        arguments: [("phy80211", "wifi"), ("wireless", "wifi"), ("uevent", "mobile"), ("none", "wired")])
    func kinds(_ mark: String, _ kind: String) async throws {
        let sysfs = try TemporaryDirectory()
        defer { sysfs.remove() }
        let folder = try sysfs.makeDirectory("class/net/v0")
        if mark == "uevent" {
            try sysfs.write("DEVTYPE=wwan\nINTERFACE=v0\n", to: "class/net/v0/uevent")
        } else {
            _ = try sysfs.makeDirectory("class/net/v0/\(mark)")
        }
        #expect(FileManager.default.fileExists(atPath: folder))
        try await following(["--sysfs", sysfs.path]) { _, follower in
            let line = try await follower.line(1)
            #expect(line.kind == kind)
            #expect(line.expensive == (kind == "mobile"))
        }
        try await following(["--sysfs", sysfs.path, "--inexpensive", "v*"]) { _, follower in
            let line = try await follower.line(1)
            #expect(!line.expensive)
        }
    }
}
