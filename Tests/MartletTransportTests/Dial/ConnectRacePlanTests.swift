import Testing

@testable import MartletTransport

@Suite("Connect race: order of addresses")
struct ConnectRacePlanTests {
    private func order(
        _ addresses: [FakeAddress], _ settings: HappyEyeballsOptions = .init(),
        avoiding: Set<FakeAddress> = []
    ) -> [FakeAddress] {
        ConnectRacePlan.order(addresses, settings: settings) { avoiding.contains($0) }
    }

    @Test("Address families alternate, IPv6 first")
    func interleaved() {
        #expect(order(["4a", "4b", "4c", "6a", "6b"]) == ["6a", "4a", "6b", "4b", "4c"])
    }

    @Test("IPv4 can be first")
    func firstIPv4() {
        #expect(order(["6a", "6b", "4a"], .init(firstFamily: .ipv4)) == ["4a", "6a", "6b"])
    }

    @Test("The family of the first address can be first")
    func firstAsResolved() {
        #expect(order(["4a", "6a", "4b"], .init(firstFamily: .asResolved)) == ["4a", "6a", "4b"])
        #expect(order(["6a", "4a", "4b"], .init(firstFamily: .asResolved)) == ["6a", "4a", "4b"])
    }

    @Test("The first-family address count sets how many addresses precede the other family")
    func firstFamilyCount() {
        let settings = HappyEyeballsOptions(firstFamilyCount: 2)
        #expect(order(["6a", "6b", "6c", "4a", "4b"], settings) == ["6a", "6b", "4a", "6c", "4b"])
    }

    @Test("A count below one is treated as one")
    func countBelowOne() {
        #expect(order(["6a", "6b", "4a"], .init(firstFamilyCount: -5)) == ["6a", "4a", "6b"])
    }

    @Test("With a single family the resolver's order is retained")
    func oneFamily() {
        #expect(order(["4c", "4a", "4b"]) == ["4c", "4a", "4b"])
        #expect(order(["6c", "6a"]) == ["6c", "6a"])
    }

    @Test("The IPv4-only option excludes IPv6")
    func onlyIPv4() {
        #expect(order(["6a", "4a", "6b", "4b"], .init(families: .ipv4Only)) == ["4a", "4b"])
    }

    @Test("The IPv6-only option excludes IPv4")
    func onlyIPv6() {
        #expect(order(["6a", "4a", "6b"], .init(families: .ipv6Only)) == ["6a", "6b"])
        #expect(order(["4a"], .init(families: .ipv6Only)).isEmpty)
    }

    @Test(
        "A unix domain socket is used with any families",
        arguments: [HappyEyeballsOptions.Families.any, .ipv4Only, .ipv6Only])
    func unixSocket(families: HappyEyeballsOptions.Families) throws {
        let address = try #require(SocketAddress(unixPath: "/run/x.sock"))
        let order = ConnectRacePlan.order([address], settings: .init(families: families)) { _ in false }
        #expect(order == [address])
    }

    @Test("An address that is listed twice is tried once")
    func duplicates() {
        #expect(order(["4a", "6a", "4a", "6a"]) == ["6a", "4a"])
    }

    @Test("Addresses that failed recently are tried last, with alternating families")
    func avoided() {
        let order = order(["6a", "6b", "6c", "4a", "4b"], avoiding: ["6a", "6b", "4a"])
        #expect(order == ["6c", "4b", "6a", "4a", "6b"])
    }

    @Test("Addresses that all failed recently are all tried")
    func allAvoided() {
        #expect(order(["4a", "6a"], avoiding: ["4a", "6a"]) == ["6a", "4a"])
    }

    @Test("The number of tried addresses stays within the limit")
    func limited() {
        let many = (0..<5000).map { FakeAddress("4-\($0)") }
        #expect(order(many).count == 32)
        #expect(order(many, .init(addressLimit: 0)) == ["4-0"])
    }
}
