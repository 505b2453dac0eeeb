package import MartletTransport

/// Links, addresses and routes as the kernel gave them, which is all that a path is made of.
package struct NetworkTable: Hashable, Sendable {
    /// At how many links, addresses and routes to everywhere the rest is not noted: a machine that has more must not cost
    /// memory without end.
    package static let countLimit = 65_536

    /// The links.
    package var links: [LinkRecord] = []
    /// The addresses.
    package var addresses: [AddressRecord] = []
    /// The routes that lead everywhere, or to a half of it.
    package var routes: [RouteRecord] = []

    /// An empty table.
    package init() {}

    /// Notes what a message of an answer says; what is of another kind is left out.
    package mutating func add(_ message: NetlinkMessage) throws(NetlinkFault) {
        switch message.type {
        case NetlinkMessage.Kind.newLink:
            let link = try LinkRecord(message.payload)
            if links.count < NetworkTable.countLimit { links.append(link) }
        case NetlinkMessage.Kind.newAddress:
            guard let address = try AddressRecord(message.payload) else { return }
            if addresses.count < NetworkTable.countLimit { addresses.append(address) }
        case NetlinkMessage.Kind.newRoute:
            guard RouteRecord.concernsDefault(message.payload), let route = try RouteRecord(message.payload)
            else { return }
            if route.isWay, routes.count < NetworkTable.countLimit { routes.append(route) }
        default: break
        }
    }

    /// The addresses of this machine, whatever their state.
    package var heldAddresses: Set<IPAddress> { Set(addresses.map(\.address)) }
}

/// What the kernel says of an address of this machine.
package struct AddressRecord: Hashable, Sendable {
    /// The link it is on.
    package var link: UInt32
    /// The address.
    package var address: IPAddress
    /// `IFA_F_…`.
    package var flags: UInt32

    /// An address.
    package init(link: UInt32, address: IPAddress, flags: UInt32 = 0) {
        self.link = link
        self.address = address
        self.flags = flags
    }

    /// Reads the payload of a message about an address; `nil` for one that is not of the internet.
    package init?(_ payload: ArraySlice<UInt8>) throws(NetlinkFault) {
        let family: UInt8 = try NetlinkNumber.read(from: payload, at: 0, "ifaddrmsg.family")
        let lowFlags: UInt8 = try NetlinkNumber.read(from: payload, at: 2, "ifaddrmsg.flags")
        link = try NetlinkNumber.read(from: payload, at: 4, "ifaddrmsg.index")
        flags = UInt32(lowFlags)
        // On a link with two ends the local address is ours and the other is the peer's; else they are the same, or there
        // is but the other.
        var local: ArraySlice<UInt8>?
        var other: ArraySlice<UInt8>?
        for attribute in try NetlinkAttributes(payload.dropFirst(8)).all {
            switch attribute.type {
            case 1: other = attribute.value
            case 2: local = attribute.value
            case 8: flags = try attribute.number("IFA_FLAGS")
            default: break
            }
        }
        guard let family = IPAddress.Family(number: family) else { return nil }
        guard let bytes = local ?? other, let address = IPAddress(bytes: bytes), address.family == family
        else { throw NetlinkFault("IFA_ADDRESS", at: payload.endIndex) }
        self.address = address
    }

    /// Whether connections can be made from it that lead beyond the link: it is neither still being tried for a double
    /// (unless it may be used meanwhile) nor refused for one, and is more than local.
    package var isUsable: Bool {
        let tentative: UInt32 = 0x40
        let optimistic: UInt32 = 0x04
        let refused: UInt32 = 0x08
        if flags & refused != 0 || (flags & tentative != 0 && flags & optimistic == 0) { return false }
        return !address.isLoopback && !address.isLinkLocal && !address.isUnspecified
    }
}

/// What the kernel says of a link: a network interface.
package struct LinkRecord: Hashable, Sendable {
    /// The number it is known by.
    package var index: UInt32
    /// Its name, such as `eth0`.
    package var name: String
    /// `IFF_…`.
    package var flags: UInt32
    /// What it is, as hardware: `ARPHRD_…`.
    package var hardware: UInt16
    /// The link below it, in the same namespace; the other end of a virtual cable.
    package var lower: UInt32?
    /// Which driver made it, such as `veth`, `wireguard`, `vlan`; `nil` for hardware.
    package var driver: String?
    /// Whether the message tells of the wireless part alone, such as that a scan is over.
    package var isWirelessNews = false

    /// A link.
    package init(
        index: UInt32, name: String, flags: UInt32, hardware: UInt16 = 1, lower: UInt32? = nil,
        driver: String? = nil
    ) {
        self.index = index
        self.name = name
        self.flags = flags
        self.hardware = hardware
        self.lower = lower
        self.driver = driver
    }

    /// Reads the payload of a message about a link.
    package init(_ payload: ArraySlice<UInt8>) throws(NetlinkFault) {
        hardware = try NetlinkNumber.read(from: payload, at: 2, "ifinfomsg.type")
        index = try NetlinkNumber.read(from: payload, at: 4, "ifinfomsg.index")
        flags = try NetlinkNumber.read(from: payload, at: 8, "ifinfomsg.flags")
        _ = try NetlinkNumber.read(UInt32.self, from: payload, at: 12, "ifinfomsg.change")
        name = ""
        var isLowerElsewhere = false
        for attribute in try NetlinkAttributes(payload.dropFirst(16)).all {
            switch attribute.type {
            case 3: name = attribute.text()
            case 5: lower = try attribute.number("IFLA_LINK")
            case 11: isWirelessNews = true
            case 18:
                let information = try NetlinkAttributes(attribute.value).all
                driver = information.first { $0.type == 1 }?.text()
            case 37: isLowerElsewhere = true
            default: break
            }
        }
        // A number that another namespace gave means another link here.
        if isLowerElsewhere || lower == 0 || lower == index { lower = nil }
    }

    /// Whether an administrator wants it to be up, and it is, down to the carrier: the last alone is not enough, and neither
    /// are the first two.
    package var isRunning: Bool {
        let wanted: UInt32 = 0x1 | 0x40 | 0x1_0000
        return flags & wanted == wanted
    }

    /// Whether it is the machine's way to itself.
    package var isLoopback: Bool { flags & 0x8 != 0 }

    /// Whether what it carries goes on inside of something that another link carries.
    package var isTunnel: Bool {
        switch driver {
        case "tun", "tap", "wireguard", "ipip", "sit", "gre", "gretap", "erspan", "ip6tnl", "ip6gre",
            "ip6gretap", "ip6erspan", "vti", "vti6", "xfrm", "ppp", "ovpn":
            true
        case nil:
            // PPP, tunnels, SIT and GRE over IPv4 and IPv6, and what has no header of its own.
            [512, 768, 769, 776, 778, 823, 65534].contains(hardware)
        default: false
        }
    }

    /// Whether it is a part or a view of the link below it.
    package var isLayer: Bool {
        switch driver {
        case "vlan", "macvlan", "macvtap", "ipvlan", "ipvtap", "macsec": true
        default: false
        }
    }
}
