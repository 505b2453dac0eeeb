import MartletTransport

/// Whether a host can be reached, now and after each change of the path.
struct HostReachabilities: AsyncSequence, Sendable {
    typealias Element = HostReachability
    typealias Failure = Never

    let monitor: NetworkMonitor
    let check: HostCheck

    struct Iterator: AsyncIteratorProtocol {
        fileprivate var views: NetworkViews
        fileprivate let check: HostCheck
        fileprivate var last: HostReachability?

        mutating func next() async -> HostReachability? {
            while let view = await views.next() {
                let found = await check.run(on: view.path)
                if Task.isCancelled { return nil }
                if found != last {
                    last = found
                    return found
                }
            }
            return nil
        }

        mutating func next(isolation actor: isolated (any Actor)?) async -> HostReachability? {
            await next()
        }
    }

    func makeAsyncIterator() -> Iterator {
        Iterator(views: monitor.views, check: check)
    }
}
