package import MartletTransport

/// One pass over what is known of the network: paths, and the addresses of this machine.
package struct NetworkViews: Sendable {
    private enum Source: Sendable {
        case subscription(NetworkWatch.Subscription)
        case manual(NewestValue<NetworkView>)
    }

    private let source: Source
    private var seen: UInt64 = 0

    init(_ origin: NetworkMonitor.Origin) {
        switch origin {
        case .watch(let watch): source = .subscription(watch.subscription())
        case .manual(let value): source = .manual(value)
        }
    }

    /// The newest view, once it is another than the one before; `nil` at the end, or when cancelled.
    package mutating func next() async -> NetworkView? {
        let found =
            switch source {
            case .subscription(let subscription): await subscription.next(after: seen)
            case .manual(let value): await value.next(after: seen)
            }
        guard let found else { return nil }
        seen = found.version
        return found.value
    }
}
