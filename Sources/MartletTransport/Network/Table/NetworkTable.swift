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
