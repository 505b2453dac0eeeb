@testable import MartletConditions
import MartletTransport
import Testing

@Suite("Netlink dumps")
struct NetlinkDumpTests {
    @Test("Links are read with name, flags and driver")
    func links() throws {
        var table = NetworkTable()
        var dump = NetlinkDump(.links, sequence: 7)
        #expect(try dump.receive(CapturedNetlink.links, into: &table) == .more)
        #expect(try dump.receive(CapturedNetlink.done, into: &table) == .done(isInterrupted: false))
        #expect(table.links.map(\.name) == ["lo", "v1", "v0"])
        #expect(table.links.map(\.index) == [1, 2, 3])
        #expect(table.links.map(\.driver) == [nil, "veth", "veth"])
        #expect(table.links.map(\.lower) == [nil, 3, 2])
        #expect(table.links.map(\.hardware) == [772, 1, 1])
        #expect(table.links.map(\.isRunning) == [false, true, true])
        #expect(table.links.map(\.isLoopback) == [true, false, false])
    }

    @Test("Addresses are read with their links, and tentative ones are not usable")
    func addresses() throws {
        var table = NetworkTable()
        var dump = NetlinkDump(.addresses, sequence: 7)
        _ = try dump.receive(CapturedNetlink.addresses, into: &table)
        let texts = table.addresses.map(\.address.description)
        #expect(texts.filter { !$0.hasPrefix("fe80") } == ["10.9.0.1", "fd09::1"])
        #expect(table.addresses.filter(\.isUsable).map(\.link) == [3, 3])
        #expect(Set(table.addresses.map(\.address)).count == 4)
    }

    @Test("Only default routes are stored")
    func routes() throws {
        var table = NetworkTable()
        var dump = NetlinkDump(.routes4, sequence: 7)
        _ = try dump.receive(CapturedNetlink.routes4, into: &table)
        #expect(
            table.routes == [
                RouteRecord(family: .ipv4, metric: 50, hops: [.init(link: 3)])
            ])
        var next = NetlinkDump(.routes6, sequence: 7)
        _ = try next.receive(CapturedNetlink.routes6, into: &table)
        #expect(table.routes.count == 2)
        #expect(table.routes.last == RouteRecord(family: .ipv6, metric: 1024, hops: [.init(link: 3)]))
    }

    @Test("A complete dump results in a path")
    func path() throws {
        var table = NetworkTable()
        for (question, datagram) in [
            (NetlinkDump.Query.links, CapturedNetlink.links), (.addresses, CapturedNetlink.addresses),
            (.routes4, CapturedNetlink.routes4), (.routes6, CapturedNetlink.routes6),
        ] {
            var dump = NetlinkDump(question, sequence: 7)
            _ = try dump.receive(datagram + CapturedNetlink.done, into: &table)
        }
        let path = NetworkPathRule(table).path
        #expect(
            path
                == NetworkPath(
                    [.init(name: "v0", index: 3, kind: .wired, addresses: ["10.9.0.1", "fd09::1"])],
                    supportsIPv6: true))
        #expect(path.description == "satisfied by v0 (wired)")
    }

    @Test("A dump that was interrupted by a change is recognized by the flag of any of its messages")
    func interrupted() throws {
        var marked = CapturedNetlink.addresses
        marked[6] |= 0x10
        var table = NetworkTable()
        var dump = NetlinkDump(.addresses, sequence: 7)
        #expect(try dump.receive(marked, into: &table) == .more)
        #expect(try dump.receive(CapturedNetlink.done, into: &table) == .done(isInterrupted: true))
        var end = CapturedNetlink.done
        end[6] |= 0x10
        var other = NetlinkDump(.addresses, sequence: 7)
        #expect(
            try other.receive(CapturedNetlink.addresses + end, into: &table) == .done(isInterrupted: true))
    }

    @Test("An error ends the dump with its number, and an acknowledgement does not")
    func errors() throws {
        var table = NetworkTable()
        var dump = NetlinkDump(.links, sequence: 7)
        let acknowledgement = CapturedNetlink.bytes("240000000200000007000000000000000000000000000000")
        #expect(throws: NetlinkError("nlmsghdr.length", at: 0)) {
            try dump.receive(acknowledgement, into: &table)
        }
        let whole = CapturedNetlink.bytes("140000000200000007000000000000000000" + "0000")
        #expect(try dump.receive(whole, into: &table) == .more)
        let rejected = CapturedNetlink.bytes("140000000200000007000000000000" + "00ffffffff")
        #expect(try dump.receive(rejected, into: &table) == .failed(1))
        let odd = CapturedNetlink.bytes("14000000020000000700000000000000" + "00000080")
        #expect(try dump.receive(odd, into: &table) == .failed(.max))
        let late = CapturedNetlink.bytes("14000000030000000700000000000000" + "f0ffffff")
        #expect(try dump.receive(late, into: &table) == .failed(16))
    }

    @Test("Responses to other requests and of other types are ignored")
    func strangers() throws {
        var table = NetworkTable()
        var dump = NetlinkDump(.links, sequence: 8)
        #expect(try dump.receive(CapturedNetlink.links + CapturedNetlink.done, into: &table) == .more)
        var addresses = NetlinkDump(.addresses, sequence: 7)
        _ = try addresses.receive(CapturedNetlink.links, into: &table)
        var routes = NetlinkDump(.routes6, sequence: 7)
        _ = try routes.receive(CapturedNetlink.routes4, into: &table)
        #expect(table == NetworkTable())
    }

    @Test("A multipath route has all of its hops, and truncated hops are an error")
    func hops() throws {
        let head = "020000000000000100000000" + "08000f00fe000000"
        let ways = "0800000002000000" + "0800110005000000"
        let route = try #require(try RouteRecord(CapturedNetlink.bytes(head + "14000900" + ways)[...]))
        #expect(route.table == 254)
        #expect(route.hops == [.init(link: 2), .init(link: 5, flags: 0x11)])
        #expect(route.hops.map(\.isAlive) == [true, false])
        #expect(throws: NetlinkError("rtnexthop.length", at: 32)) {
            try RouteRecord(
                CapturedNetlink.bytes(head + "14000900" + "0800000002000000" + "0c00110005000000")[...])
        }
    }

    @Test("The route to an address is its first hop, or unreachable")
    func answers() throws {
        let route = "240000001800000009000000000000000220000000000001000000000800040003000000"
        guard case .route(let found)? = try RouteReply(CapturedNetlink.bytes(route), sequence: 9) else {
            Issue.record("no route")
            return
        }
        #expect(found.hops == [.init(link: 3)])
        let unreachable = "140000000200000009000000000000009bffffff"
        #expect(try RouteReply(CapturedNetlink.bytes(unreachable), sequence: 9) == .unreachable)
        let rejected = "14000000020000000900000000000000ffffffff"
        #expect(try RouteReply(CapturedNetlink.bytes(rejected), sequence: 9) == .rejected(1))
        #expect(try RouteReply(CapturedNetlink.bytes(rejected), sequence: 8) == nil)
    }

    @Test("Events about links, addresses and default routes matter")
    func relevantEvents() {
        #expect(NetlinkEventRule.matters(CapturedNetlink.links[...]))
        #expect(NetlinkEventRule.matters(CapturedNetlink.addresses[...]))
        #expect(NetlinkEventRule.matters(CapturedNetlink.routes4[...]))
        // The routes without the default route, which is the first.
        #expect(!NetlinkEventRule.matters(CapturedNetlink.routes4.dropFirst(60)))
        #expect(NetlinkEventRule.matters([1, 2, 3]))
        #expect(!NetlinkEventRule.matters([]))
    }

    @Test("The end of a wireless scan does not matter")
    func scans() {
        let scan = "280000001000000000000000000000000000010003000000431001000000000008000b0001020304"
        #expect(!NetlinkEventRule.matters(CapturedNetlink.bytes(scan)[...]))
    }
}
