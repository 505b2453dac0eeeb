/// The values of a changing source as an `AsyncSequence`: the current one first, then each newer one.
///
/// A slow consumer skips values, but always receives the last one; then the sequence ends. Any number of tasks may
/// iterate. Cancelling one of them ends only its iteration.
public struct LatestValues<Element: Sendable>: AsyncSequence, Sendable {
    /// Iteration does not fail.
    public typealias Failure = Never

    private let newest: @Sendable (UInt64) async -> (version: UInt64, value: Element)?
    private let latest: @Sendable () -> Element

    /// Creates the values of a source, each converted to an element.
    package init<Value>(_ source: CurrentValue<Value>, _ element: @escaping @Sendable (Value) -> Element) {
        self.init {
            await source.next(after: $0).map { ($0.version, element($0.value)) }
        } latest: {
            element(source.value)
        }
    }

    /// The current value.
    public var current: Element { latest() }

    /// Creates the values from two functions: `newest` waits for a value whose version differs from the given one;
    /// `latest` returns the current value without waiting.
    init(
        _ newest: @escaping @Sendable (UInt64) async -> (version: UInt64, value: Element)?,
        latest: @escaping @Sendable () -> Element
    ) { (self.newest, self.latest) = (newest, latest) }

    /// An iterator over the values.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let values: LatestValues
        fileprivate var seen: UInt64 = 0

        /// Returns the latest value that this iterator has not returned; `nil` after the last one, or when cancelled.
        public mutating func next() async -> Element? { await next(isolation: #isolation) }

        /// Returns the latest value that this iterator has not returned; `nil` after the last one, or when cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> Element? {
            guard let (version, value) = await values.newest(seen) else { return nil }
            seen = version
            return value
        }
    }

    /// Returns an iterator that starts with the current value.
    public func makeAsyncIterator() -> Iterator { Iterator(values: self) }
}
