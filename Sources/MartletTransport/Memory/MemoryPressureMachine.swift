/// Decides what level the kernel's figures amount to, and when they have to be looked at again.
///
/// Where the kernel calls (a trigger of a pressure file), nothing is looked at as long as it keeps silent: the first call
/// raises the level, and from then on the shares are looked at every two seconds until they have fallen. Where it does
/// not, they are looked at every two seconds, which is how often it calculates them.
///
/// A level rises at once and falls when its share has fallen below half of where it began, and not before ten seconds have
/// passed since the kernel last called: a level that flickers helps nobody.
package struct MemoryPressureMachine: Sendable {
    /// How often shares are looked at.
    package static let interval = Duration.seconds(2)
    /// How long a call of the kernel counts.
    package static let holding = Duration.seconds(10)
    /// The share of `some` that is a warning: a tenth of the time, in hundredths of a percent.
    package static let warningShare = 1_000
    /// The share of `full` that is critical: a tenth of the time.
    package static let criticalShare = 1_000

    /// The level.
    package private(set) var level = MemoryPressure.normal
    /// When shares have to be looked at again; `nil` when the kernel calls first.
    package private(set) var nextLook: MonotonicTime?

    private let isCalled: Bool
    private let interval: Duration
    private var warningEnd = MonotonicTime(nanoseconds: 0)
    private var criticalEnd = MonotonicTime(nanoseconds: 0)

    /// A machine that has seen nothing.
    /// - Parameters:
    ///   - isCalled: Whether the kernel calls.
    ///   - interval: How often shares are looked at.
    package init(isCalled: Bool, interval: Duration = MemoryPressureMachine.interval) {
        self.isCalled = isCalled
        self.interval = interval
    }

    /// The shares were looked at.
    package mutating func looked(_ stall: MemoryStall, now: MonotonicTime) {
        let isCritical = MemoryPressureMachine.holds(
            stall.full, limit: MemoryPressureMachine.criticalShare, isHeld: level == .critical)
        let isWarning = MemoryPressureMachine.holds(
            stall.some, limit: MemoryPressureMachine.warningShare, isHeld: level >= .warning)
        if isCritical || now < criticalEnd {
            level = .critical
        } else if isWarning || now < warningEnd {
            level = .warning
        } else {
            level = .normal
        }
        nextLook = isCalled && level == .normal ? nil : now.advanced(by: interval)
    }

    /// The kernel called: tasks waited for longer than it was asked to let pass.
    /// - Parameter level: What it was asked to call for.
    package mutating func called(for called: MemoryPressure, now: MonotonicTime) {
        let end = now.advanced(by: MemoryPressureMachine.holding)
        if called == .critical { criticalEnd = end }
        if called >= .warning { warningEnd = end }
        level = max(level, called)
        if nextLook == nil, level > .normal { nextLook = now.advanced(by: interval) }
    }

    private static func holds(_ share: Int, limit: Int, isHeld: Bool) -> Bool {
        share >= (isHeld ? limit / 2 : limit)
    }
}
