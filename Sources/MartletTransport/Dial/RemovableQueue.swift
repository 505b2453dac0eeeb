import DequeModule

/// A first-in, first-out queue of distinct elements, each of which can be removed in amortized constant time.
struct RemovableQueue<Element: Hashable> {
    /// The elements in order. An entry whose ticket is not the element's current one was removed.
    private var entries = Deque<(element: Element, ticket: UInt64)>()
    private var tickets: [Element: UInt64] = [:]
    private var lastTicket: UInt64 = 0

    var count: Int { tickets.count }

    var isEmpty: Bool { tickets.isEmpty }

    /// The element that was appended first.
    var first: Element? { entries.first?.element }

    /// The number of entries in memory, those of removed elements included.
    var storedCount: Int { entries.count }

    /// Appends an element. An element that is in the queue keeps its position.
    mutating func append(_ element: Element) {
        guard tickets[element] == nil else { return }
        lastTicket += 1
        tickets[element] = lastTicket
        entries.append((element, lastTicket))
    }

    /// Removes an element. An element that is not in the queue is ignored.
    mutating func remove(_ element: Element) {
        guard tickets.removeValue(forKey: element) != nil else { return }
        // Keeps `first` valid.
        while let entry = entries.first, !isCurrent(entry) { entries.removeFirst() }
        if entries.count > 2 * tickets.count + 16 {
            entries = Deque(entries.filter { isCurrent($0) })
        }
    }

    /// Removes the first element and returns it.
    mutating func popFirst() -> Element? {
        guard let element = first else { return nil }
        remove(element)
        return element
    }

    /// The first element that satisfies a condition.
    func first(where condition: (Element) -> Bool) -> Element? {
        entries.first { isCurrent($0) && condition($0.element) }?.element
    }

    private func isCurrent(_ entry: (element: Element, ticket: UInt64)) -> Bool {
        tickets[entry.element] == entry.ticket
    }
}
