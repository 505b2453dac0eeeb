import MartletTransport

/// The state machine that determines the level of memory pressure, and the time of the next reading.
///
/// If the kernel sends notifications (a trigger of a pressure file), nothing is read until the first one, which raises
/// the level. From then on the shares are read every two seconds until they have fallen. Without notifications they are
/// read every two seconds, the interval at which the kernel calculates them.
///
/// A level rises immediately. It falls when its share is below half of the threshold, but at the earliest ten seconds
/// after the kernel's last notification. This prevents flicker.
struct MemoryPressureMachine: WatchMachine {
    /// The interval of reading the shares.
    static let interval = Duration.seconds(2)
    /// The time for which a notification of the kernel counts.
    private static let holding = Duration.seconds(10)
    /// The share of `some` for a warning, and of `full` for the critical level, in hundredths of a percent.
    private static let threshold = 1_000

    private(set) var level = MemoryPressure.normal
    /// The time at which the shares have to be read again; `nil` if the kernel sends a notification first.
    private(set) var nextEvent: MonotonicTime?

    private let hasTriggers: Bool
    private let interval: Duration
    private var warningEnd = MonotonicTime(nanoseconds: 0)
    private var criticalEnd = MonotonicTime(nanoseconds: 0)

    /// - Parameter hasTriggers: Whether the kernel sends notifications.
    init(hasTriggers: Bool, interval: Duration = MemoryPressureMachine.interval) {
        (self.hasTriggers, self.interval) = (hasTriggers, interval)
    }

    mutating func sampled(_ stall: MemoryStall, now: MonotonicTime) {
        let isCritical = MemoryPressureMachine.holds(stall.full, isHeld: level == .critical)
        let isWarning = MemoryPressureMachine.holds(stall.some, isHeld: level >= .warning)
        level = isCritical || now < criticalEnd ? .critical : isWarning || now < warningEnd ? .warning : .normal
        nextEvent = hasTriggers && level == .normal ? nil : now.advanced(by: interval)
    }

    /// Handles a notification of the kernel: tasks waited for longer than the limit of a trigger.
    /// - Parameter triggered: The level of the trigger.
    mutating func triggerFired(level triggered: MemoryPressure, now: MonotonicTime) {
        let end = now.advanced(by: MemoryPressureMachine.holding)
        if triggered == .critical { criticalEnd = end }
        if triggered >= .warning { warningEnd = end }
        level = max(level, triggered)
        if nextEvent == nil, level > .normal { nextEvent = now.advanced(by: interval) }
    }

    private static func holds(_ share: Int, isHeld: Bool) -> Bool { share >= (isHeld ? threshold / 2 : threshold) }
}

/// The memory pressure of the machine, or of the control group of this process.
public enum MemoryPressure: Int, Comparable, CaseIterable, Codable, Sendable {
    /// There is enough memory.
    case normal
    /// Tasks wait for memory occasionally: memory that can be recreated should be released.
    case warning
    /// All tasks wait for memory much of the time: processes that retain memory may be terminated.
    case critical

    /// Orders levels by severity.
    public static func < (left: MemoryPressure, right: MemoryPressure) -> Bool { left.rawValue < right.rawValue }
}

/// The contents of the kernel's pressure file: the share of time that tasks waited for memory.
///
/// The format is that of the kernel's `Documentation/accounting/psi.rst`:
/// ```
/// some avg10=0.12 avg60=0.00 avg300=0.00 total=301898
/// full avg10=0.00 avg60=0.00 avg300=0.00 total=227345
/// ```
struct MemoryStall: Hashable, Sendable {
    /// The share of the last ten seconds during which some task waited for memory, 0–10,000 hundredths of a percent.
    var some = 0
    /// The share during which all runnable tasks waited; zero if the file has no such line.
    var full = 0
    /// The total time that some task waited since the machine started, in microseconds; `nil` if it is missing.
    var someTotal: UInt64?
    /// The total time that all tasks waited, in microseconds; `nil` if the file does not contain it.
    var fullTotal: UInt64?

    /// Returns the higher of each share, without the totals, which are specific to a file.
    func joined(_ other: MemoryStall) -> MemoryStall {
        MemoryStall(some: max(some, other.some), full: max(full, other.full))
    }

    struct ParseError: Error, Hashable, Sendable, CustomStringConvertible {
        var line: Int
        /// The field that is missing or malformed.
        var field: String

        /// A text such as `line 2: avg10`.
        var description: String { "line \(line): \(field)" }
    }
}

extension MemoryStall {
    /// Reads the contents of a pressure file. Lines and fields with other names are ignored: future kernels may have
    /// more of them. If a line occurs twice, the higher share counts.
    /// - Throws: ``ParseError`` if the line `some` is missing, or a line has no `avg10` from 0.00 to 100.00.
    init(parsing bytes: some Collection<UInt8>) throws(ParseError) {
        var hasSome = false
        var number = 0
        for line in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
            number += 1
            let words = line.split(separator: UInt8(ascii: " "))
            guard let name = words.first else { continue }
            let isSome = name.elementsEqual("some".utf8)
            guard isSome || name.elementsEqual("full".utf8) else { continue }
            func value(_ key: String) -> [UInt8]? {
                words.first { $0.starts(with: key.utf8) }.map { Array($0.dropFirst(key.utf8.count)) }
            }
            guard let share = value("avg10=").flatMap(MemoryStall.hundredths) else {
                throw ParseError(line: number, field: "avg10")
            }
            let total = value("total=").flatMap { UInt64(String(decoding: $0.prefix(21), as: UTF8.self)) }
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

    /// Returns a share such as `12.34`, in hundredths of a percent; `nil` if it is malformed.
    private static func hundredths(_ digits: [UInt8]) -> Int? {
        let parts = digits.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 2, (1...3).contains(parts[0].count), parts[1].count == 2,
            parts.joined().allSatisfy({ (0x30...0x39).contains($0) }),
            let value = Int(String(decoding: parts.joined(), as: UTF8.self)), value <= 10_000
        else { return nil }
        return value
    }
}

/// A check whether the kernel's own total confirms a notification. On virtual machines, some kernels reported a stall
/// of 100 ms per second although the total of the same file had grown by only 4 ms since the trigger was set. Without
/// this check, memory would be released unnecessarily.
struct StallDetector: Sendable {
    /// The minimum waiting time that a notification implies, in microseconds.
    let limit: UInt64
    /// The last known total in microseconds; with `nil` all notifications count.
    private(set) var total: UInt64?

    /// Whether a notification of the kernel counts.
    /// - Parameter total: The current total, in microseconds.
    mutating func counts(_ total: UInt64?) -> Bool {
        defer { self.total = total ?? self.total }
        guard let total, let last = self.total, total >= last else { return true }
        return total - last >= limit
    }
}
