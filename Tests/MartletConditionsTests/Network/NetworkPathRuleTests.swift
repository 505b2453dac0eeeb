@testable import MartletConditions
import MartletTransport
import Testing

@Suite("Network path rule")
struct NetworkPathRuleTests {
    private static let running: UInt32 = 0x1 | 0x2 | 0x40 | 0x1000 | 0x1_0000

    /// Returns the table of a machine with one wired link.
    private func table() throws -> NetworkTable {
        var table = NetworkTable()
        table.links = [
            LinkRecord(index: 1, name: "lo", flags: 0x1_0049, hardware: 772),
            LinkRecord(index: 2, name: "eth0", flags: Self.running),
        ]
        table.addresses = [
            AddressRecord(link: 1, address: try address("127.0.0.1")),
            AddressRecord(link: 2, address: try address("192.0.2.2")),
        ]
        table.routes = [RouteRecord(family: .ipv4, metric: 100, hops: [.init(link: 2)])]
        return table
    }

    private func address(_ text: String) throws -> IPAddress { try #require(IPAddress(text)) }

    private func path(
        _ table: NetworkTable, traits: [UInt32: InterfaceTraits] = [:],
        overrides: [String: InterfaceOverride] = [:]
    ) -> NetworkPath {
        NetworkPathRule(table, traits: traits, overrides: overrides).path
    }

    @Test("A running link with an address and a default route is a path")
    func satisfied() throws {
        let path = path(try table())
        #expect(path.status == .satisfied)
        #expect(path.interfaces == [.init(name: "eth0", index: 2, kind: .wired, addresses: ["192.0.2.2"])])
        #expect(path.supportsIPv4 && !path.supportsIPv6 && !path.isExpensive)
    }

    @Test(
        "A link that is down, not running or without carrier is not a path, even with a route",
        arguments: [0x1, 0x40, 0x1_0000] as [UInt32])
    func flags(_ missing: UInt32) throws {
        var table = try table()
        table.links[1].flags &= ~missing
        #expect(path(table) == .unsatisfied)
    }

    @Test(
        "A loopback or link-local address is not sufficient",
        arguments: ["169.254.3.4", "127.0.0.5", "0.0.0.0"])
    func addresses(_ text: String) throws {
        var table = try table()
        table.addresses[1].address = try address(text)
        #expect(path(table) == .unsatisfied)
    }

    @Test("An address of the other family is not sufficient")
    func families() throws {
        var table = try table()
        table.addresses[1].address = try address("2001:db8::2")
        #expect(path(table) == .unsatisfied)
        table.routes[0].family = .ipv6
        #expect(path(table).supportsIPv6)
        #expect(!path(table).supportsIPv4)
        table.addresses[1].address = try address("fe80::2")
        #expect(path(table) == .unsatisfied)
    }

    @Test("A tentative address is not sufficient unless it is optimistic")
    func tentative() throws {
        var table = try table()
        table.addresses[1].flags = 0x40
        #expect(path(table) == .unsatisfied)
        table.addresses[1].flags = 0x44
        #expect(path(table).isSatisfied)
        table.addresses[1].flags = 0x08
        #expect(path(table) == .unsatisfied)
    }

    @Test("An unreachable or dead route is not a path")
    func routes() throws {
        for change: (inout RouteRecord) -> Void in [
            { $0.type = 7 }, { $0.hops[0].flags = 0x1 }, { $0.hops[0].flags = 0x10 }, { $0.table = 255 },
            { $0.flags = 0x200 }, { $0.hops = [] }, { $0.prefixLength = 8 }, { $0.hops[0].link = 9 },
        ] {
            var table = try table()
            change(&table.routes[0])
            #expect(path(table) == .unsatisfied)
        }
    }

    @Test("Two half-default routes over one link are a default route, and one of them is not")
    func halves() throws {
        var table = try table()
        table.routes[0].prefixLength = 1
        #expect(path(table) == .unsatisfied)
        table.routes.append(table.routes[0])
        #expect(path(table) == .unsatisfied)
        table.routes[1].destination = try address("128.0.0.0")
        #expect(path(table).isSatisfied)
    }

    @Test("An address on another link is sufficient if the route names it as its source")
    func source() throws {
        var table = try table()
        table.addresses = [AddressRecord(link: 1, address: try address("198.51.100.1"))]
        #expect(path(table) == .unsatisfied)
        table.routes[0].source = try address("198.51.100.1")
        #expect(path(table).isSatisfied)
        table.links[0].flags &= ~1
        #expect(path(table) == .unsatisfied)
    }

    @Test("The interface with the lowest metric is preferred, and tables of rules follow")
    func preference() throws {
        var table = try table()
        for (index, name) in [(3 as UInt32, "eth1"), (4, "eth2")] {
            table.links.append(LinkRecord(index: index, name: name, flags: Self.running))
            table.addresses.append(AddressRecord(link: index, address: try address("192.0.2.\(index)")))
        }
        table.routes.append(RouteRecord(family: .ipv4, metric: 50, hops: [.init(link: 3)]))
        table.routes.append(RouteRecord(family: .ipv4, table: 100, metric: 0, hops: [.init(link: 4)]))
        #expect(path(table).interfaces.map(\.name) == ["eth1", "eth0", "eth2"])
    }

    @Test("A wireless link is Wi-Fi, and a link with device type wwan is mobile and expensive")
    func kinds() throws {
        let table = try table()
        #expect(path(table, traits: [2: .init(isWireless: true)]).kind == .wifi)
        #expect(path(table, traits: [2: .init(deviceType: "wlan")]).kind == .wifi)
        let mobile = path(table, traits: [2: .init(deviceType: "wwan")])
        #expect(mobile.kind == .mobile)
        #expect(mobile.isExpensive)
        #expect(path(table, traits: [2: .init(deviceType: "bridge")]).kind == .wired)
    }

    @Test("A configured override precedes detected traits, and the most specific name wins")
    func overrides() throws {
        let table = try table()
        let traits = [2 as UInt32: InterfaceTraits(deviceType: "wwan")]
        #expect(!path(table, traits: traits, overrides: ["eth0": .init(isExpensive: false)]).isExpensive)
        let wired = path(
            table, traits: traits, overrides: ["e*": .init(isExpensive: true), "et*": .init(kind: .wired)])
        #expect(wired.kind == .wired)
        #expect(!wired.isExpensive)
        let both = path(
            table, overrides: ["*": .init(kind: .mobile), "eth0": .init(kind: .wifi, isExpensive: true)])
        #expect(both.kind == .wifi)
        #expect(both.isExpensive)
        #expect(path(table, overrides: ["eth": .init(kind: .mobile)]).kind == .wired)
    }

    @Test("A tunnel has the kind of its lower link or of the default route below it")
    func tunnels() throws {
        var table = try table()
        table.links.append(
            LinkRecord(index: 5, name: "wg0", flags: Self.running, hardware: 65534, driver: "wireguard"))
        table.addresses.append(AddressRecord(link: 5, address: try address("10.0.0.2")))
        table.routes.append(RouteRecord(family: .ipv4, table: 51820, hops: [.init(link: 5)]))
        let traits = [2 as UInt32: InterfaceTraits(deviceType: "wwan")]
        let below = path(table, traits: traits)
        #expect(below.interfaces.map(\.name) == ["eth0", "wg0"])
        #expect(below.interfaces.map(\.kind) == [.mobile, .mobile])
        #expect(below.interfaces.map(\.isTunnel) == [false, true])
        // So is its cost, unless the tunnel has an override of its own.
        let expensive = path(table, overrides: ["eth0": .init(isExpensive: true)])
        #expect(expensive.interfaces.map(\.isExpensive) == [true, true])
        let cheap = path(table, traits: traits, overrides: ["eth0": .init(isExpensive: false)])
        #expect(cheap.interfaces.map(\.isExpensive) == [false, false])
        let own = path(
            table, overrides: ["eth0": .init(isExpensive: true), "wg0": .init(isExpensive: false)])
        #expect(own.interfaces.map(\.isExpensive) == [true, false])
        // The tunnel replaces the route below it and names its link.
        table.routes.remove(at: 0)
        #expect(path(table, traits: traits).kind == .wired)
        table.links[2].lower = 2
        #expect(path(table, traits: traits).kind == .mobile)
        #expect(path(table, traits: traits).isExpensive)
    }

    @Test("A VLAN has the kind of its lower link, and cyclic lower links end")
    func layers() throws {
        var table = try table()
        table.links.append(LinkRecord(index: 3, name: "wlan0", flags: Self.running))
        table.links[1].driver = "vlan"
        table.links[1].lower = 3
        #expect(path(table, traits: [3: .init(isWireless: true)]).kind == .wifi)
        table.links[2].driver = "macvlan"
        table.links[2].lower = 2
        #expect(path(table).kind == .wired)
    }

    @Test("The peer of a virtual Ethernet pair is not its lower link")
    func virtualCables() throws {
        var table = try table()
        table.links[1].driver = "veth"
        table.links[1].lower = 3
        table.links.append(LinkRecord(index: 3, name: "wlan0", flags: Self.running))
        #expect(path(table, traits: [3: .init(isWireless: true)]).kind == .wired)
    }

    @Test("Without links, addresses and routes there is no path")
    func empty() {
        #expect(path(NetworkTable()) == .unsatisfied)
    }

    @Test("The device type is read from its line at any position")
    func deviceTypes() {
        #expect(InterfaceTraits.deviceType(inEvent: Array("DEVTYPE=wwan\nINTERFACE=wwan0\n".utf8)) == "wwan")
        #expect(InterfaceTraits.deviceType(inEvent: Array("INTERFACE=eth0\nDEVTYPE=wlan".utf8)) == "wlan")
        #expect(InterfaceTraits.deviceType(inEvent: Array("XDEVTYPE=wwan\n".utf8)) == nil)
        #expect(InterfaceTraits.deviceType(inEvent: []) == nil)
    }
}
