/// One pass over the elements of a response that a separate task reads, some at a time. The task starts when the first
/// element is requested.
struct BackgroundPass<Element: Sendable> {
    private let read: @Sendable (Handoff<[Element]>) async -> Void
    private var pieces: BackgroundRead<[Element]>?
    /// The elements of the last piece that were not returned yet.
    private var ready: ArraySlice<Element> = []
    private var isOver = false

    init(_ read: @escaping @Sendable (Handoff<[Element]>) async -> Void) { self.read = read }

    /// Returns the next element; `nil` after the last one. An error ends the pass.
    mutating func next() async throws -> Element? {
        if let element = ready.popFirst() { return element }
        if isOver { return nil }
        let current = pieces ?? BackgroundRead(read)
        // Restored below if elements arrive. Otherwise releasing `current`, the last reference, closes the connection.
        (pieces, isOver) = (nil, true)
        guard let piece = try await current.elements.take() else { return nil }
        (pieces, ready, isOver) = (current, piece[...], false)
        return ready.popFirst()
    }
}
