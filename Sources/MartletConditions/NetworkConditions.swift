import MartletTransport

/// Values computed from the snapshots of a monitor, without consecutive duplicates.
struct NetworkChanges<Element: Equatable & Sendable>: AsyncSequence, Sendable {
    typealias Failure = Never

    let monitor: NetworkMonitor
    /// Computes a value; `nil` ends the iteration.
    let value: @Sendable (NetworkSnapshot) async -> Element?

    struct Iterator: AsyncIteratorProtocol {
        fileprivate var views: ValueReader<NetworkSnapshot>
        fileprivate let value: @Sendable (NetworkSnapshot) async -> Element?
        fileprivate var last: Element?

        mutating func next() async -> Element? {
            while let view = await views.next() {
                guard let found = await value(view) else { return nil }
                if found != last {
                    last = found
                    return found
                }
            }
            return nil
        }

        mutating func next(isolation actor: isolated (any Actor)?) async -> Element? { await next() }
    }

    func makeAsyncIterator() -> Iterator { Iterator(views: monitor.views(), value: value) }
}

/// A network path that is set manually, for tests and for programs with another source, such as NetworkManager.
public final class ManualNetworkPath: Sendable {
    private let newest: CurrentValue<NetworkSnapshot>

    /// Creates a source with an initial path; unknown by default.
    public init(_ path: NetworkPath = .unknown) { newest = CurrentValue(NetworkSnapshot(path: path)) }

    deinit { newest.finish() }

    /// The current path.
    public var path: NetworkPath { newest.value.path }

    /// The monitor of the paths. Its iteration ends when this object is released.
    public var monitor: NetworkMonitor { NetworkMonitor(newest) }

    /// Changes the path.
    /// - Parameter localAddresses: All addresses of the machine, without ports; sessions that follow the monitor close
    ///   connections from removed addresses. `nil`, the default, if they are not known. Invalid addresses are ignored.
    public func set(_ path: NetworkPath, localAddresses: [String]? = nil) {
        let addresses = localAddresses.map { Set($0.compactMap { IPAddress($0) }) }
        newest.update { NetworkSnapshot(path: path, addresses: addresses) }
    }
}
