package import MartletTransport

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

/// How short of memory the machine is, or the group of processes this one belongs to.
public enum MemoryPressure: Int, Comparable, CaseIterable, Codable, Sendable {
    /// There is enough.
    case normal
    /// Tasks wait for memory now and then: what can be had again should be let go.
    case warning
    /// All tasks wait for memory much of the time: whoever keeps some risks being ended.
    case critical

    /// Orders by how bad it is.
    public static func < (left: MemoryPressure, right: MemoryPressure) -> Bool {
        left.rawValue < right.rawValue
    }
}

/// What a pressure file of the kernel says at one moment: the share of time in which tasks waited for memory.
///
/// The format is that of the kernel's `Documentation/accounting/psi.rst`:
/// ```
/// some avg10=0.12 avg60=0.00 avg300=0.00 total=301898
/// full avg10=0.00 avg60=0.00 avg300=0.00 total=227345
/// ```
package struct MemoryStall: Hashable, Sendable {
    /// The share of the last ten seconds in which some task waited for memory, in hundredths of a percent: 0–10,000.
    package var some: Int
    /// The share in which all tasks that could run waited; zero where the file has no such line.
    package var full: Int
    /// For how long some task waited since the machine began, in microseconds; `nil` where the file does not say.
    package var someTotal: UInt64?
    /// For how long all of them did, in microseconds; `nil` where the file does not say.
    package var fullTotal: UInt64?

    /// A stall.
    package init(some: Int = 0, full: Int = 0, someTotal: UInt64? = nil, fullTotal: UInt64? = nil) {
        self.some = some
        self.full = full
        self.someTotal = someTotal
        self.fullTotal = fullTotal
    }

    /// The worse of two shares in each respect; totals are each file's own.
    package func joined(_ other: MemoryStall) -> MemoryStall {
        MemoryStall(some: max(some, other.some), full: max(full, other.full))
    }

    /// What is wrong with a pressure file.
    package struct ParseError: Error, Hashable, Sendable, CustomStringConvertible {
        /// The line, from 1.
        package var line: Int
        /// What is missing or malformed there.
        package var field: String

        /// An error.
        package init(line: Int, field: String) {
            self.line = line
            self.field = field
        }

        /// For example `line 2: avg10`.
        package var description: String { "line \(line): \(field)" }
    }

    /// Reads the contents of a pressure file.
    ///
    /// Lines and fields of other names are passed over: kernels to come may have more of them. A line that comes twice
    /// counts as its worse one.
    /// - Throws: ``ParseError`` where the line `some` is missing, or a line has no `avg10` from 0.00 to 100.00.
    package init(parsing bytes: some Collection<UInt8>) throws(ParseError) {
        self.init()
        var hasSome = false
        var number = 0
        for line in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
            number += 1
            let words = line.split(separator: UInt8(ascii: " "))
            guard let name = words.first else { continue }
            let isSome = name.elementsEqual("some".utf8)
            guard isSome || name.elementsEqual("full".utf8) else { continue }
            let key = "avg10=".utf8
            guard let word = words.dropFirst().first(where: { $0.starts(with: key) }),
                let share = MemoryStall.hundredths(word.dropFirst(key.count))
            else { throw ParseError(line: number, field: "avg10") }
            let sum = "total=".utf8
            let total = words.first { $0.starts(with: sum) }
                .flatMap { UInt64(String(decoding: $0.dropFirst(sum.count).prefix(21), as: UTF8.self)) }
            if isSome {
                hasSome = true
                some = max(some, share)
                someTotal = total
            } else {
                full = max(full, share)
                fullTotal = total
            }
        }
        if !hasSome { throw ParseError(line: max(1, number), field: "some") }
    }

    /// A share such as `12.34`, in hundredths of a percent; `nil` where it is none.
    private static func hundredths(_ digits: some Collection<UInt8>) -> Int? {
        let parts = digits.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 2, (1...3).contains(parts[0].count), parts[1].count == 2 else { return nil }
        var value = 0
        for byte in parts.joined() {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
            value = 10 * value + Int(byte - UInt8(ascii: "0"))
        }
        return value <= 10_000 ? value : nil
    }
}

/// Decides whether a call of the kernel's is borne out by the time that it counted itself.
///
/// On virtual machines kernels were seen to call for a stall of 100 ms in a second while the total of the same file had
/// grown by 4 ms since they were asked: whoever believes that gives up all that is in memory for nothing.
struct StallGrowth: Sendable {
    /// The time in which tasks waited that a call means at least, in microseconds.
    let limit: UInt64
    /// The total when it was looked at last.
    private var total: UInt64?

    /// - Parameter total: The present total in microseconds; `nil` where it is not known, and calls are believed.
    init(limit: UInt64, total: UInt64?) {
        self.limit = limit
        self.total = total
    }

    /// The kernel called: whether that counts.
    /// - Parameter total: The present total, in microseconds.
    mutating func counts(_ total: UInt64?) -> Bool {
        defer { self.total = total ?? self.total }
        guard let total, let last = self.total, total >= last else { return true }
        return total - last >= limit
    }
}
