/// A long run with figures and targets.
protocol SoakScenario: Sendable {
    /// The name on the command line.
    var name: String { get }

    /// Runs the scenario and adds its figures to the report.
    /// - Throws: An error that prevents the measurement; a missed target is not an error.
    func run(_ options: SoakOptions, _ report: inout SoakReport) async throws
}

/// The error of a scenario that could not measure.
struct SoakFailure: Error, CustomStringConvertible {
    /// The explanation of the failure.
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
