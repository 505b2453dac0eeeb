import MartletCore
import MartletTransport

/// The conditions of the paths of a monitor, each once.
struct NetworkConditions: AsyncSequence, Sendable {
    typealias Element = NetworkCondition
    typealias Failure = Never

    let monitor: NetworkMonitor

    struct Iterator: AsyncIteratorProtocol {
        fileprivate var paths: NetworkMonitor.Iterator
        fileprivate var last: NetworkCondition?

        mutating func next() async -> NetworkCondition? {
            while let path = await paths.next() {
                if path.condition != last {
                    last = path.condition
                    return path.condition
                }
            }
            return nil
        }

        mutating func next(isolation actor: isolated (any Actor)?) async -> NetworkCondition? { await next() }
    }

    func makeAsyncIterator() -> Iterator { Iterator(paths: monitor.makeAsyncIterator()) }
}

/// A network path that is set by hand: for tests, and for programs that learn of it from elsewhere, such as from
/// NetworkManager.
public final class ManualNetworkPath: Sendable {
    private let newest: NewestValue<NetworkView>

    /// A path to begin with; unknown by default.
    public init(_ path: NetworkPath = .unknown) { newest = NewestValue(NetworkView(path: path)) }

    deinit { newest.finish() }

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

extension NetworkPath {
    /// What it means for how much is asked of the network at once: ``NetworkCondition/mobile`` for whatever is expensive, and
    /// ``NetworkCondition/unknown`` where there is no path.
    public var condition: NetworkCondition {
        guard let interface = interfaces.first else { return .unknown }
        if interface.isExpensive { return .mobile }
        return interface.kind == .wifi ? .wifi : .unmetered
    }
}
