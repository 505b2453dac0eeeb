/// A property that an input broke: what was expected, and what came of it.
package struct FuzzFinding: Error, Equatable, Sendable, CustomStringConvertible {
    /// What was broken, as a sentence for people.
    package let description: String

    /// A finding of that description.
    package init(_ description: String) { self.description = description }
}

/// Throws a finding unless a property holds.
///
/// - Parameters:
///   - isTrue: whether it holds.
///   - description: what is broken if it does not.
func require(_ isTrue: Bool, _ description: @autoclosure () -> String) throws(FuzzFinding) {
    if !isTrue { throw FuzzFinding(description()) }
}
