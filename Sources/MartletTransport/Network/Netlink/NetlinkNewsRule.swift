/// Whether a datagram that came unasked is a reason to ask again.
///
/// News only say that something changed. What they say is not put together to a state: a link that goes down takes its
/// default route of IPv4 along without a word about the route.
package enum NetlinkNewsRule {
    /// Whether a path may have changed. What cannot be read may be anything.
    package static func matters(_ datagram: ArraySlice<UInt8>) -> Bool {
        do throws(NetlinkFault) {
            for message in try NetlinkMessage.messages(in: datagram) {
                switch message.type {
                case NetlinkMessage.Kind.newLink:
                    // Wireless drivers tell of every scan.
                    if !(try LinkRecord(message.payload).isWirelessNews) { return true }
                case NetlinkMessage.Kind.deletedLink, NetlinkMessage.Kind.newAddress,
                    NetlinkMessage.Kind.deletedAddress, NetlinkMessage.Kind.overrun,
                    NetlinkMessage.Kind.error:
                    return true
                case NetlinkMessage.Kind.newRoute, NetlinkMessage.Kind.deletedRoute:
                    // Routers that speak BGP change thousands of others a minute.
                    if RouteRecord.concernsDefault(message.payload) { return true }
                default: break
                }
            }
            return false
        } catch {
            return true
        }
    }
}
