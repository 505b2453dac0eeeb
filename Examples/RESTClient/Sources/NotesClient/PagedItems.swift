/// The items of a list that comes in pages. The next page is requested when all items of the previous one were read.
public struct PagedItems<Item: Decodable & Sendable>: AsyncSequence, Sendable {
    /// An item of the list.
    public typealias Element = Item

    let page: @Sendable (_ cursor: String?) async throws -> Page<Item>

    /// Creates an iterator that starts at the first page.
    public func makeAsyncIterator() -> Iterator { Iterator(page: page) }

    /// An iterator that reads one item after the other.
    public struct Iterator: AsyncIteratorProtocol {
        let page: @Sendable (_ cursor: String?) async throws -> Page<Item>
        private var items: ArraySlice<Item> = []
        private var cursor: String?
        private var isLastPage = false

        init(page: @escaping @Sendable (_ cursor: String?) async throws -> Page<Item>) { self.page = page }

        /// Returns the next item, or `nil` after the last one of the last page.
        public mutating func next() async throws -> Item? {
            // A page may be empty although others follow.
            while items.isEmpty {
                if isLastPage { return nil }
                let next = try await page(cursor)
                items = next.items[...]
                cursor = next.nextCursor
                isLastPage = next.nextCursor == nil
            }
            return items.removeFirst()
        }
    }
}
