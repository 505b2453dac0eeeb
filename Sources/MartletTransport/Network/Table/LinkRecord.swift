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
            "ip6gretap",
            "ip6erspan", "vti", "vti6", "xfrm", "ppp", "ovpn":
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
