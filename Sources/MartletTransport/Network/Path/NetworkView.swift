/// What is known of the network at one moment.
package struct NetworkView: Hashable, Sendable {
    /// The path.
    package var path: NetworkPath
    /// All addresses of this machine, those of links that are down included; `nil` where they are not known.
    package var addresses: Set<IPAddress>?

    /// A view.
    package init(path: NetworkPath, addresses: Set<IPAddress>? = nil) {
        self.path = path
        self.addresses = addresses
    }

    /// Nothing is known.
    package static let unknown = NetworkView(path: .unknown)
}
