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
        else {
            throw NetlinkFault("IFA_ADDRESS", at: payload.endIndex)
        }
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
