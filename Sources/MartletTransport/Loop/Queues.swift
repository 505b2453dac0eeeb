/// A first-in, first-out queue. Appending and removing the first element take amortized constant time.
@usableFromInline package struct FIFOQueue<Element>: RandomAccessCollection {
    /// The oldest elements, in reverse order: `popFirst` removes the last one.
    @usableFromInline var front: [Element] = []
    /// The elements after those of `front`, in order.
    @usableFromInline var back: [Element] = []

    @inlinable package init() {}

    @inlinable package init(_ elements: some Sequence<Element>) { back = Array(elements) }

    @inlinable package var startIndex: Int { 0 }
    @inlinable package var endIndex: Int { front.count + back.count }
    @inlinable package var first: Element? { front.last ?? back.first }

    @inlinable package subscript(index: Int) -> Element {
        index < front.count ? front[front.count - 1 - index] : back[index - front.count]
    }

    @inlinable package mutating func append(_ element: Element) { back.append(element) }

    @inlinable @discardableResult package mutating func popFirst() -> Element? {
        if front.isEmpty {
            swap(&front, &back)
            front.reverse()
        }
        return front.popLast()
    }

    /// Inserts an element at an index, in constant time at the end, otherwise in linear time.
    package mutating func insert(_ element: Element, at index: Int) {
        if index < front.count {
            front.insert(element, at: front.count - index)
        } else {
            back.insert(element, at: index - front.count)
        }
    }

    /// Removes the element at an index, in linear time.
    @inlinable @discardableResult package mutating func remove(at index: Int) -> Element {
        index < front.count ? front.remove(at: front.count - 1 - index) : back.remove(at: index - front.count)
    }
}

extension FIFOQueue: Sendable where Element: Sendable {}

/// A priority queue that returns the least element first. Adding and removing an element take logarithmic time.
package struct MinHeap<Element: Comparable> {
    /// The elements; none is less than its parent, which has the index `(index - 1) / 2`.
    package private(set) var unordered: [Element] = []

    package init() {}

    /// Creates a heap in linear time.
    package init(_ elements: [Element]) {
        unordered = elements
        for index in (0..<elements.count / 2).reversed() { siftDown(from: index) }
    }

    package var count: Int { unordered.count }
    package var min: Element? { unordered.first }

    package mutating func insert(_ element: Element) {
        var index = unordered.count
        unordered.append(element)
        while index > 0, element < unordered[(index - 1) / 2] {
            unordered.swapAt(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    @discardableResult package mutating func popMin() -> Element? {
        guard let last = unordered.popLast() else { return nil }
        guard let least = unordered.first else { return last }
        unordered[0] = last
        siftDown(from: 0)
        return least
    }

    private mutating func siftDown(from start: Int) {
        var index = start
        while case var child = 2 * index + 1, child < unordered.count {
            if child + 1 < unordered.count, unordered[child + 1] < unordered[child] { child += 1 }
            guard unordered[child] < unordered[index] else { return }
            unordered.swapAt(index, child)
            index = child
        }
    }
}

extension MinHeap: Sendable where Element: Sendable {}

/// A dictionary of limited size. When it is full, the least recently used value is removed, in linear time.
struct LeastRecentlyUsed<Key: Hashable, Value> {
    /// The values, and the value of ``clock`` at their last use.
    private var entries: [Key: (value: Value, lastUse: UInt64)] = [:]
    private var clock: UInt64 = 0
    private let limit: Int

    /// Creates an empty dictionary.
    /// - Parameter limit: The maximum number of values, at least 1.
    init(limit: Int) { self.limit = max(1, limit) }

    var count: Int { entries.count }

    /// Returns a value, and records its use.
    mutating func value(for key: Key) -> Value? {
        clock += 1
        entries[key]?.lastUse = clock
        return entries[key]?.value
    }

    /// Stores a value, or removes it with `nil`.
    /// - Returns: The replaced or evicted value, which the caller may release after a lock.
    mutating func update(_ value: Value?, for key: Key) -> Value? {
        clock += 1
        let former = entries.removeValue(forKey: key)?.value
        guard let value else { return former }
        var evicted: Value?
        if entries.count >= limit, let oldest = entries.min(by: { $0.value.lastUse < $1.value.lastUse }) {
            evicted = entries.removeValue(forKey: oldest.key)?.value
        }
        entries[key] = (value, clock)
        return former ?? evicted
    }
}
