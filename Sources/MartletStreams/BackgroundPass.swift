/// One pass over the elements of a response that a separate task reads, some at a time. The task starts when the first
/// element is requested.
struct BackgroundPass<Element: Sendable> {
    private let read: @Sendable (Handoff<[Element]>) async throws -> Void
    private var pieces: BackgroundRead<[Element]>?
    /// The elements of the last piece that were not returned yet.
    private var ready: ArraySlice<Element> = []
    private var isOver = false

    /// Creates a pass.
    /// - Parameter read: Passes the elements. The pass ends when it returns or throws.
    init(_ read: @escaping @Sendable (Handoff<[Element]>) async throws -> Void) { self.read = read }

    private func start() -> BackgroundRead<[Element]> {
        BackgroundRead { [read] pieces in
            do {
                try await read(pieces)
                pieces.finish()
            } catch { pieces.finish(throwing: error) }
        }
    }

    /// Returns the next element; `nil` after the last one. An error ends the pass.
    mutating func next() async throws -> Element? {
        if let element = ready.popFirst() { return element }
        if isOver { return nil }
        let current = pieces ?? start()
        // Restored below if elements arrive. Otherwise releasing `current`, the last reference, closes the connection.
        (pieces, isOver) = (nil, true)
        guard let piece = try await current.elements.take() else { return nil }
        (pieces, ready, isOver) = (current, piece[...], false)
        return ready.popFirst()
    }
}
