/// A text that is not JSON.
struct JSONError: Error, Sendable, CustomStringConvertible {
    /// What was wrong.
    var reason: String
    /// The byte it was found at, from 0.
    var offset: Int

    /// What was wrong and where.
    var description: String { "not JSON: \(reason) at byte \(offset)" }
}
