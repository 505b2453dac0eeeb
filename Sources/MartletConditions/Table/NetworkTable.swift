import MartletTransport

/// The links, addresses and routes of the kernel, from which a path is determined.
package struct NetworkTable: Hashable, Sendable {
    /// The maximum number of links, of addresses and of default routes, which limits the memory. More are ignored.
    private static let countLimit = 65_536

    package var links: [LinkRecord] = []
    package var addresses: [AddressRecord] = []
    /// The routes whose destination is the whole address space, or half of it.
    package var routes: [RouteRecord] = []

    package init() {}

    /// Adds the object of a response's message; messages of other types are ignored.
    mutating func add(_ message: NetlinkMessage) throws(NetlinkError) {
        switch message.type {
        case NetlinkMessage.Kind.newLink:
            let link = try LinkRecord(message.payload)
            if links.count < NetworkTable.countLimit { links.append(link) }
        case NetlinkMessage.Kind.newAddress:
            guard let address = try AddressRecord(message.payload) else { return }
            if addresses.count < NetworkTable.countLimit { addresses.append(address) }
        case NetlinkMessage.Kind.newRoute:
            guard RouteRecord.concernsDefault(message.payload), let route = try RouteRecord(message.payload) else {
                return
            }
            if route.isUsable, routes.count < NetworkTable.countLimit { routes.append(route) }
        default: break
        }
    }
}

/// An address of this machine, as the kernel describes it.
package struct AddressRecord: Hashable, Sendable {
    var link: UInt32
    var address: IPAddress
    /// The flags of the address, `IFA_F_…`.
    var flags: UInt32 = 0

    /// Whether the address can be used for connections beyond the link. Duplicate address detection must not have
    /// failed, and must have finished unless the address may be used before.
    var isUsable: Bool {
        let (tentative, optimistic, failed): (UInt32, UInt32, UInt32) = (0x40, 0x04, 0x08)
        if flags & failed != 0 || (flags & tentative != 0 && flags & optimistic == 0) { return false }
        return !address.isLoopback && !address.isLinkLocal && !address.isUnspecified
    }
}

extension AddressRecord {
    /// Reads the payload of a message about an address; `nil` if it is neither IPv4 nor IPv6.
    init?(_ payload: ArraySlice<UInt8>) throws(NetlinkError) {
        let family: UInt8 = try NetlinkNumber.read(from: payload, at: 0, "ifaddrmsg.family")
        let lowFlags: UInt8 = try NetlinkNumber.read(from: payload, at: 2, "ifaddrmsg.flags")
        link = try NetlinkNumber.read(from: payload, at: 4, "ifaddrmsg.index")
        flags = UInt32(lowFlags)
        // On a link with two ends, the local address is this machine's and the other one is the peer's. On other links
        // they are the same, or only the other one is given.
        var local: ArraySlice<UInt8>?
        var other: ArraySlice<UInt8>?
        for attribute in try NetlinkAttribute.all(in: payload.dropFirst(8)) {
            switch attribute.type {
            case 1: other = attribute.value
            case 2: local = attribute.value
            case 8: flags = try attribute.number("IFA_FLAGS")
            default: break
            }
        }
        guard let family = IPAddress.Family(number: family) else { return nil }
        guard let bytes = local ?? other, let address = IPAddress(bytes: bytes), address.family == family else {
            throw NetlinkError("IFA_ADDRESS", at: payload.endIndex)
        }
        self.address = address
    }
}

/// A link (a network interface), as the kernel describes it.
package struct LinkRecord: Hashable, Sendable {
    var index: UInt32
    /// The name, such as `eth0`.
    var name: String
    /// The flags of the link, `IFF_…`.
    var flags: UInt32
    /// The type of hardware, `ARPHRD_…`.
    var hardware: UInt16 = 1
    /// The lower link, in the same namespace; for a `veth`, the other end.
    var lower: UInt32?
    /// The kind of a virtual link, such as `veth`, `wireguard`, `vlan`; `nil` for hardware.
    var driver: String?
    /// Whether the message is only about the wireless part, such as the end of a scan.
    var isWirelessEvent = false

    /// Whether the link is administratively up, running, and has a carrier.
    var isRunning: Bool {
        let wanted: UInt32 = 0x1 | 0x40 | 0x1_0000
        return flags & wanted == wanted
    }

    var isLoopback: Bool { flags & 0x8 != 0 }

    /// Whether packets are encapsulated in packets of another link.
    var isTunnel: Bool {
        switch driver {
        case "tun", "tap", "wireguard", "ipip", "sit", "gre", "gretap", "erspan", "ip6tnl", "ip6gre", "ip6gretap",
            "ip6erspan", "vti", "vti6", "xfrm", "ppp", "ovpn":
            true
        case nil:
            // PPP, tunnels, SIT and GRE over IPv4 and IPv6, and links without their own header.
            [512, 768, 769, 776, 778, 823, 65534].contains(hardware)
        default: false
        }
    }

    /// Whether the link is a part or a view of the link below it.
    var isLayer: Bool { ["vlan", "macvlan", "macvtap", "ipvlan", "ipvtap", "macsec"].contains(driver) }
}

extension LinkRecord {
    init(_ payload: ArraySlice<UInt8>) throws(NetlinkError) {
        hardware = try NetlinkNumber.read(from: payload, at: 2, "ifinfomsg.type")
        index = try NetlinkNumber.read(from: payload, at: 4, "ifinfomsg.index")
        flags = try NetlinkNumber.read(from: payload, at: 8, "ifinfomsg.flags")
        _ = try NetlinkNumber.read(UInt32.self, from: payload, at: 12, "ifinfomsg.change")
        name = ""
        var isLowerElsewhere = false
        for attribute in try NetlinkAttribute.all(in: payload.dropFirst(16)) {
            switch attribute.type {
            case 3: name = attribute.text
            case 5: lower = try attribute.number("IFLA_LINK")
            case 11: isWirelessEvent = true
            case 18: driver = try NetlinkAttribute.all(in: attribute.value).first { $0.type == 1 }?.text
            case 37: isLowerElsewhere = true
            default: break
            }
        }
        // A number from another namespace would identify a different link here.
        if isLowerElsewhere || lower == 0 || lower == index { lower = nil }
    }
}

/// A route, as the kernel describes it.
package struct RouteRecord: Hashable, Sendable {
    /// One of the next hops of a route, or its only one.
    struct Hop: Hashable, Sendable {
        /// The number of the outgoing link.
        var link: UInt32
        /// The flags of the hop, `RTNH_F_…`.
        var flags: UInt32 = 0

        /// Whether the kernel uses the hop: it is neither dead nor without carrier.
        var isAlive: Bool { flags & (0x1 | 0x10) == 0 }
    }

    /// The main table of routes, used first unless rules specify another one.
    static let mainTable: UInt32 = 254
    /// The table of the machine's own addresses.
    private static let localTable: UInt32 = 255

    var family: IPAddress.Family
    /// The number of significant bits in the destination: none for a default route.
    var prefixLength: UInt8 = 0
    /// The destination; `nil` if it is all zeros.
    var destination: IPAddress?
    var table = RouteRecord.mainTable
    /// The type, `RTN_…`: 1 leads to another machine, 2 to this machine; other types are not usable routes.
    var type: UInt8 = 1
    /// The flags, `RTM_F_…` and, for the only hop of a route, `RTNH_F_…`.
    var flags: UInt32 = 0
    /// The metric: the route with the lower number is preferred.
    var metric: UInt32 = 0
    /// The address of this machine that packets are sent from, if the route has one.
    var source: IPAddress?
    var hops: [Hop]

    /// Whether the payload of a message is about a route that a path can depend on: its destination is the whole
    /// address space, or half of it. A router's tables have a million other routes, which are not decoded.
    static func concernsDefault(_ payload: ArraySlice<UInt8>) -> Bool {
        payload.count < 2 || payload[payload.startIndex + 1] <= 1
    }

    /// Whether the route leads to another machine, is not of the machine's own table, and is not cached.
    var isUsable: Bool { type == 1 && table != RouteRecord.localTable && flags & 0x200 == 0 }
}

extension RouteRecord {
    /// Reads the payload of a message about a route; `nil` if it is neither IPv4 nor IPv6.
    init?(_ payload: ArraySlice<UInt8>) throws(NetlinkError) {
        let family: UInt8 = try NetlinkNumber.read(from: payload, at: 0, "rtmsg.family")
        prefixLength = try NetlinkNumber.read(from: payload, at: 1, "rtmsg.dst_len")
        let table: UInt8 = try NetlinkNumber.read(from: payload, at: 4, "rtmsg.table")
        type = try NetlinkNumber.read(from: payload, at: 7, "rtmsg.type")
        flags = try NetlinkNumber.read(from: payload, at: 8, "rtmsg.flags")
        self.table = UInt32(table)
        hops = []
        guard let family = IPAddress.Family(number: family) else { return nil }
        self.family = family
        func address(_ attribute: NetlinkAttribute, _ field: String) throws(NetlinkError) -> IPAddress {
            guard let address = IPAddress(bytes: attribute.value), address.family == family else {
                throw NetlinkError(field, at: attribute.value.startIndex)
            }
            return address
        }
        for attribute in try NetlinkAttribute.all(in: payload.dropFirst(12)) {
            switch attribute.type {
            case 1: destination = try address(attribute, "RTA_DST")
            case 4: hops.append(Hop(link: try attribute.number("RTA_OIF"), flags: flags))
            case 6: metric = try attribute.number("RTA_PRIORITY")
            case 7: source = try address(attribute, "RTA_PREFSRC")
            case 9: hops += try RouteRecord.hops(attribute.value)
            case 15: self.table = try attribute.number("RTA_TABLE")
            default: break
            }
        }
    }

    /// Returns the hops of a route with several: each has a length, flags, weight, link and attributes.
    private static func hops(_ bytes: ArraySlice<UInt8>) throws(NetlinkError) -> [Hop] {
        let records = try NetlinkNumber.records(in: bytes, UInt16.self, headerCount: 8, "rtnexthop.length")
        return try records.map { record throws(NetlinkError) in
            let flags: UInt8 = try NetlinkNumber.read(from: record, at: 2, "rtnexthop.flags")
            let link: UInt32 = try NetlinkNumber.read(from: record, at: 4, "rtnexthop.ifindex")
            return Hop(link: link, flags: UInt32(flags))
        }
    }
}
