@testable import MartletConditions
import MartletTransport
import Testing

@Suite("Netlink datagrams")
struct NetlinkMessageTests {
    private func bytes(_ digits: String) -> [UInt8] { CapturedNetlink.bytes(digits) }

    @Test("A request for links has the format of the kernel")
    func links() {
        #expect(
            NetlinkDump(.links, sequence: 7).request
                == bytes(
                    "28000000120001030700000000000000000000000000000000000000000000000800 1d0008000000"
                        .filter { $0 != " " }))
    }

    @Test("A request for addresses covers all families")
    func addresses() {
        #expect(
            NetlinkDump(.addresses, sequence: 258).request
                == bytes("180000001600010302010000000000000000000000000000"))
    }

    @Test("A request for routes names the family")
    func routes() {
        #expect(
            NetlinkDump(.routes6, sequence: 1).request
                == bytes("1c0000001a000103010000000000000" + "00a0000000000000000000000"))
    }

    @Test("A request for one route has the address with its full prefix length")
    func route() throws {
        let address = try #require(IPAddress("192.0.2.1"))
        #expect(
            RouteReply.request(to: address, sequence: 9)
                == bytes("240000001a0001000900000000000000" + "022000000000000000000000" + "08000100c0000201")
        )
    }

    @Test("The messages of a datagram are returned in order, each with its own bytes")
    func messages() throws {
        let messages = try NetlinkMessage.messages(in: CapturedNetlink.links[...])
        #expect(messages.map(\.type) == [16, 16, 16])
        #expect(messages.map(\.sequence) == [7, 7, 7])
        #expect(messages.map { $0.payload.count + 16 } == [1100, 1124, 1124])
        let end = try NetlinkMessage.messages(in: CapturedNetlink.done[...])
        #expect(end.map(\.type) == [3])
        #expect(try end[0].errorCode() == 0)
    }

    @Test(
        "A length that is too small, too large or truncated is an error with its offset",
        arguments: [
            ("0f000000030002000700000000000000", 0), ("00000000030002000700000000000000", 0),
            ("11000000030002000700000000000000", 0), ("ffffffff030002000700000000000000", 0),
            ("000000800300020007000000000000000000000000", 0), ("100000", 3),
            ("10000000030002000700000000000000" + "10000000", 16),
            ("10000000030002000700000000000000" + "0400000003000200", 16),
        ])
    func lengths(_ digits: String, _ offset: Int) {
        #expect(throws: NetlinkError("nlmsghdr.length", at: offset)) {
            try NetlinkMessage.messages(in: CapturedNetlink.bytes(digits)[...])
        }
    }

    @Test("A message is padded to a multiple of four, and the padding of the last one can be absent")
    func padding() throws {
        let one = bytes("110000000100000000000000000000" + "00aa")
        let messages = try NetlinkMessage.messages(in: (one + [0, 0, 0] + one)[...])
        #expect(messages.count == 2)
        #expect(messages.map { Array($0.payload) } == [[0xAA], [0xAA]])
    }

    @Test(
        "An attribute with a wrong length is an error, and three bytes after the last one are ignored"
    )
    func attributes() throws {
        #expect(throws: NetlinkError("rtattr.length", at: 0)) {
            try NetlinkAttribute.all(in: [3, 0, 1, 0])
        }
        #expect(throws: NetlinkError("rtattr.length", at: 8)) {
            try NetlinkAttribute.all(in: [5, 0, 1, 0, 9, 0, 0, 0, 6, 0, 1, 0, 9])
        }
        let read = try NetlinkAttribute.all(in: [5, 0, 1, 0x80, 9, 0, 0, 0, 4, 0, 2, 0, 1, 1, 1])
        #expect(read.map(\.type) == [1, 2])
        #expect(read.map { Array($0.value) } == [[9], []])
    }

    @Test("Each truncated datagram is parsed or is an error with an offset in its bytes")
    func cuts() throws {
        for datagram in [
            CapturedNetlink.links, CapturedNetlink.addresses, CapturedNetlink.routes4,
            CapturedNetlink.routes6,
        ] {
            for count in 0..<datagram.count {
                let cut = Array(datagram.prefix(count))
                var table = NetworkTable()
                do throws(NetlinkError) {
                    for message in try NetlinkMessage.messages(in: cut[...]) { try table.add(message) }
                } catch {
                    #expect((0...cut.count).contains(error.offset))
                    continue
                }
                // A cut without an error is between two messages.
                #expect(count == 0 || table.links.count + table.addresses.count > 0 || datagram[4] == 24)
            }
        }
    }

    @Test("Changing any byte of a real datagram does not trap")
    func flips() {
        for datagram in [CapturedNetlink.addresses, CapturedNetlink.routes4, CapturedNetlink.routes6] {
            for index in datagram.indices {
                for value in [0x00, 0x01, 0x7F, 0x80, 0xFF] as [UInt8] {
                    var changed = datagram
                    changed[index] = value
                    var table = NetworkTable()
                    var dump = NetlinkDump(.routes4, sequence: 7)
                    _ = try? dump.receive(changed, into: &table)
                    for message in (try? NetlinkMessage.messages(in: changed[...])) ?? [] {
                        try? table.add(message)
                    }
                    _ = NetworkPathRule(table).path
                    _ = try? RouteReply(changed, sequence: 7)
                    _ = NetlinkEventRule.matters(changed[...])
                }
            }
            #expect(NetlinkEventRule.matters(datagram[...]))
        }
    }
}
