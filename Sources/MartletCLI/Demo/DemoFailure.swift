/// A step of the demo that did not go as it should.
struct DemoFailure: Error, CustomStringConvertible {
    /// What was wrong.
    var description: String

    init(_ description: String) {
        self.description = description
    }

    /// Throws unless a condition holds.
    static func check(_ condition: Bool, _ description: @autoclosure () -> String) throws(DemoFailure) {
        if !condition { throw DemoFailure(description()) }
    }
}
