package import MartletTransport

/// What the kernel says of a route.
package struct RouteRecord: Hashable, Sendable {
    /// One of the ways of a route that has several, or its only one.
    package struct Hop: Hashable, Sendable {
        /// The link it leaves by.
        package var link: UInt32
        /// `RTNH_F_…`.
        package var flags: UInt32

        /// A way by a link.
        package init(link: UInt32, flags: UInt32 = 0) {
            self.link = link
            self.flags = flags
        }

        /// Whether the kernel sends by it: it is neither dead nor without carrier.
        package var isAlive: Bool { flags & (0x1 | 0x10) == 0 }
    }

    /// The table of routes that is asked first, unless rules say otherwise.
    package static let mainTable: UInt32 = 254
    /// The table of the machine's own addresses.
    package static let localTable: UInt32 = 255

    /// The family.
    package var family: IPAddress.Family
    /// How many bits of the destination count: none for a default route.
    package var prefixLength: UInt8
    /// The destination; `nil` for that of all zeros.
    package var destination: IPAddress?
    /// The table it is in.
    package var table: UInt32
    /// `RTN_…`: 1 leads somewhere, 2 to this machine; others lead nowhere.
    package var type: UInt8
    /// `RTM_F_…` and, for the only way of a route, `RTNH_F_…`.
    package var flags: UInt32
    /// Of two routes the one with the lower number is taken.
    package var metric: UInt32
    /// The address of this machine that packets leave with, where the route says one.
    package var source: IPAddress?
    /// The ways.
    package var hops: [Hop]

    /// A route.
    package init(
        family: IPAddress.Family, prefixLength: UInt8 = 0, destination: IPAddress? = nil,
        table: UInt32 = RouteRecord.mainTable, type: UInt8 = 1, flags: UInt32 = 0, metric: UInt32 = 0,
        source: IPAddress? = nil, hops: [Hop]
    ) {
        self.family = family
        self.prefixLength = prefixLength
        self.destination = destination
        self.table = table
        self.type = type
        self.flags = flags
        self.metric = metric
        self.source = source
        self.hops = hops
    }

    /// Reads the payload of a message about a route; `nil` for one that is not of the internet.
    package init?(_ payload: ArraySlice<UInt8>) throws(NetlinkFault) {
        let family: UInt8 = try NetlinkNumber.read(from: payload, at: 0, "rtmsg.family")
        prefixLength = try NetlinkNumber.read(from: payload, at: 1, "rtmsg.dst_len")
        let table: UInt8 = try NetlinkNumber.read(from: payload, at: 4, "rtmsg.table")
        type = try NetlinkNumber.read(from: payload, at: 7, "rtmsg.type")
        flags = try NetlinkNumber.read(from: payload, at: 8, "rtmsg.flags")
        self.table = UInt32(table)
        metric = 0
        hops = []
        guard let family = IPAddress.Family(number: family) else { return nil }
        self.family = family
        for attribute in try NetlinkAttributes(payload.dropFirst(12)).all {
            switch attribute.type {
            case 1: destination = try RouteRecord.address(attribute, family, "RTA_DST")
            case 4: hops.append(Hop(link: try attribute.number("RTA_OIF"), flags: flags))
            case 6: metric = try attribute.number("RTA_PRIORITY")
            case 7: source = try RouteRecord.address(attribute, family, "RTA_PREFSRC")
            case 9: hops += try RouteRecord.hops(attribute.value)
            case 15: self.table = try attribute.number("RTA_TABLE")
            default: break
            }
        }
    }

    private static func address(
        _ attribute: NetlinkAttributes.Attribute, _ family: IPAddress.Family, _ field: String
    ) throws(NetlinkFault) -> IPAddress {
        guard let address = IPAddress(bytes: attribute.value), address.family == family else {
            throw NetlinkFault(field, at: attribute.value.startIndex)
        }
        return address
    }

    /// The ways of a route that has several, each with a length, flags, weight and link, and attributes behind.
    private static func hops(_ bytes: ArraySlice<UInt8>) throws(NetlinkFault) -> [Hop] {
        var hops: [Hop] = []
        var rest = bytes
        while rest.count >= 8 {
            let length: UInt16 = try NetlinkNumber.read(from: rest, at: 0, "rtnexthop.length")
            let count = Int(length)
            guard count >= 8, count <= rest.count else {
                throw NetlinkFault("rtnexthop.length", at: rest.startIndex)
            }
            let flags: UInt8 = try NetlinkNumber.read(from: rest, at: 2, "rtnexthop.flags")
            let link: UInt32 = try NetlinkNumber.read(from: rest, at: 4, "rtnexthop.ifindex")
            hops.append(Hop(link: link, flags: UInt32(flags)))
            rest = rest.dropFirst(NetlinkMessage.aligned(count))
        }
        return hops
    }

    /// Whether the payload of a message is about a route that a path can depend on: one to everywhere, or to a half of it.
    ///
    /// A router's tables have a million others, which are not even read.
    package static func concernsDefault(_ payload: ArraySlice<UInt8>) -> Bool {
        payload.count < 2 || payload[payload.startIndex + 1] <= 1
    }

    /// Whether the kernel remembers it of a packet, and it is no route of a table.
    package var isRemembered: Bool { flags & 0x200 != 0 }

    /// Whether it leads somewhere, by a table that is not the machine's own.
    package var isWay: Bool { type == 1 && table != RouteRecord.localTable && !isRemembered }
}
