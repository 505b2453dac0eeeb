/// A property that an input violated, with the expected and the actual result.
package struct FuzzFinding: Error, Equatable, Sendable, CustomStringConvertible {
    /// The violation as a readable sentence.
    package let description: String

    /// Creates a finding with a description.
    package init(_ description: String) { self.description = description }
}

/// Throws a finding unless a property holds.
///
/// - Parameters:
///   - isTrue: Whether the property holds.
///   - description: The violation if it does not hold.
func require(_ isTrue: Bool, _ description: @autoclosure () -> String) throws(FuzzFinding) {
    if !isTrue { throw FuzzFinding(description()) }
}
