/// What came of reading cookies from a file.
public struct CookieImportReport: Sendable, Hashable {
    /// How many cookies were stored.
    public var stored: Int
    /// How many were not, though their lines are whole: they have expired, or are more than the jar keeps.
    public var dropped: Int
    /// The lines that are damaged or no cookie, counted from 1; the first thousand of them.
    public var malformedLines: [Int]

    /// How many malformed lines are remembered.
    static let malformedLimit = 1000

    /// A report of nothing.
    init(malformedLines: [Int] = []) {
        stored = 0
        dropped = 0
        self.malformedLines = malformedLines
    }
}
