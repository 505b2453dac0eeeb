/// In which order entries are given up. It knows them by numbers, small and dense; each call takes the same time however
/// many there are.
package protocol EvictionPolicy: Sendable {
    /// Adds one that is not there, as the newest.
    mutating func insert(_ entry: Int)
    /// Notes that one was used.
    mutating func touch(_ entry: Int)
    /// Removes one.
    mutating func remove(_ entry: Int)
    /// The one to give up next; `nil` where there is none. It stays until it is removed.
    mutating func victim() -> Int?
    /// Whether a use is remembered of it that its place does not show.
    func isMarked(_ entry: Int) -> Bool
}
