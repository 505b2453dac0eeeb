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
