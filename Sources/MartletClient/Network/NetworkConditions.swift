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

        mutating func next(isolation actor: isolated (any Actor)?) async -> NetworkCondition? {
            await next()
        }
    }

    func makeAsyncIterator() -> Iterator {
        Iterator(paths: monitor.makeAsyncIterator())
    }
}
