/// A long run with figures to meet.
protocol SoakScenario: Sendable {
    /// What it is called on the command line.
    var name: String { get }

    /// Runs it and adds its figures to the report.
    /// - Throws: What keeps it from measuring; a figure that is not met is no error.
    func run(_ options: SoakOptions, _ report: inout SoakReport) async throws
}

/// Why a scenario could not measure.
struct SoakFailure: Error, CustomStringConvertible {
    /// What happened.
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
