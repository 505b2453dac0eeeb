import Glibc

/// The figures of a scenario, which are printed immediately.
struct SoakReport {
    /// The scenario's name.
    let name: String
    /// Whether every figure so far met its target.
    private(set) var isMet = true

    init(name: String) {
        self.name = name
    }

    /// Adds a figure with a target.
    mutating func add(_ figure: String, _ measured: String, target: String, isMet: Bool) {
        if !isMet { self.isMet = false }
        print(line(figure, measured, target, isMet ? "met" : "NOT MET"))
        flush()
    }

    /// Adds a figure with an upper bound.
    mutating func add(_ figure: String, _ measured: Double, atMost bound: Double, unit: String) {
        add(
            figure, "\(SoakReport.short(measured)) \(unit)", target: "≤ \(SoakReport.short(bound)) \(unit)",
            isMet: measured <= bound)
    }

    /// Adds a figure with a lower bound.
    mutating func add(_ figure: String, _ measured: Double, atLeast bound: Double, unit: String) {
        add(
            figure, "\(SoakReport.short(measured)) \(unit)", target: "≥ \(SoakReport.short(bound)) \(unit)",
            isMet: measured >= bound)
    }

    /// Adds a number that must equal the expected one.
    mutating func add(_ figure: String, _ measured: Int, exactly expected: Int) {
        add(figure, "\(measured)", target: "\(expected)", isMet: measured == expected)
    }

    /// Adds a figure without a target.
    func note(_ figure: String, _ measured: String) {
        print(line(figure, measured, "", ""))
        flush()
    }

    /// Prints the result of the scenario.
    func finish(after duration: Duration) {
        print(line("seconds", SoakReport.short(duration.seconds), "", isMet ? "PASSED" : "FAILED"))
        flush()
    }

    private func line(_ figure: String, _ measured: String, _ target: String, _ verdict: String) -> String {
        [(name, 16), (figure, 46), (measured, 34), (target, 20)]
            .map { SoakReport.padded($0.0, $0.1) }.joined() + verdict
    }

    private func flush() {
        fflush(nil)
    }

    private static func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(1, width - text.count))
    }

    /// Formats a number with at most two decimal places.
    static func short(_ number: Double) -> String {
        let rounded = (number * 100).rounded() / 100
        return rounded == rounded.rounded() && abs(rounded) < 1e15 ? "\(Int(rounded))" : "\(rounded)"
    }
}

extension Duration {
    /// The duration in seconds.
    var seconds: Double {
        Double(components.seconds) + Double(components.attoseconds) * 1e-18
    }
}
