/// A small number for each code point, 0 unless the table says otherwise.
struct CodePointTable: Sendable {
    private var starts: [UInt32] = []
    private var ends: [UInt32] = []
    private var values: [UInt8] = []

    /// Unpacks runs of gap, length - 1 and value.
    init(packed: String) {
        var numbers = PackedNumbers(packed)
        var position = 0
        while let gap = numbers.next() {
            let start = position + gap
            position = start + numbers.required() + 1
            starts.append(UInt32(truncatingIfNeeded: start))
            ends.append(UInt32(truncatingIfNeeded: position))
            values.append(UInt8(truncatingIfNeeded: numbers.required()))
        }
    }

    /// The value of a scalar.
    subscript(_ scalar: Unicode.Scalar) -> UInt8 {
        guard let run = starts.lastIndex(notAbove: scalar.value), scalar.value < ends[run] else { return 0 }
        return values[run]
    }
}

extension [UInt32] {
    /// The last index of a sorted array whose element is at most `value`, by bisection.
    func lastIndex(notAbove value: UInt32) -> Int? {
        var low = 0
        var high = count
        while low < high {
            let middle = (low + high) / 2
            if self[middle] <= value { low = middle + 1 } else { high = middle }
        }
        return low == 0 ? nil : low - 1
    }
}
