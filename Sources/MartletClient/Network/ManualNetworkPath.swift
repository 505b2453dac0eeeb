public import MartletTransport

/// A network path that is set by hand: for tests, and for programs that learn of it from elsewhere, such as from
/// NetworkManager.
public final class ManualNetworkPath: Sendable {
    private let newest: NewestValue<NetworkView>

    /// A path to begin with; unknown by default.
    public init(_ path: NetworkPath = .unknown) {
        newest = NewestValue(NetworkView(path: path))
    }

    deinit {
        newest.finish()
    }

    /// The present path.
    public var path: NetworkPath { newest.value.path }

    /// The paths as others follow them. Their iteration ends when this object goes.
    public var monitor: NetworkMonitor { NetworkMonitor(newest) }

    /// Changes the path.
    /// - Parameter localAddresses: All addresses that the machine has, without ports; sessions that follow close connections
    ///   from one that was there before and is not any more. `nil`, the default, for addresses that are not known. What is no
    ///   address is left out.
    public func set(_ path: NetworkPath, localAddresses: [String]? = nil) {
        let addresses = localAddresses.map { Set($0.compactMap { IPAddress($0) }) }
        newest.update { NetworkView(path: path, addresses: addresses) }
    }
}
