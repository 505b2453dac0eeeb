/// The mapping table of UTS #46, for non-transitional processing without STD3 rules (UTS #46 §5).
struct MappingTable: Sendable {
    /// What is done with a code point.
    enum Status: Equatable {
        /// Kept as it is; the deviation characters too.
        case valid
        /// Dropped.
        case ignored
        /// Replaced by these.
        case mapped([Unicode.Scalar])
        /// No name may hold it.
        case disallowed
    }

    private enum Action: Sendable {
        case valid
        case ignored
        case shifted(Int)
        case replaced(by: [Unicode.Scalar])
        /// Capital and small letter by turns: every other one, from the first, maps to its successor.
        case alternating
    }

    private var starts: [UInt32] = []
    private var ends: [UInt32] = []
    private var actions: [Action] = []

    /// Unpacks runs of gap, (length - 1) * 8 + kind, and what the kind needs.
    init(packed: String) {
        var numbers = PackedNumbers(packed)
        var position = 0
        while let gap = numbers.next() {
            let start = position + gap
            let header = numbers.required()
            position = start + header >> 3 + 1
            starts.append(UInt32(truncatingIfNeeded: start))
            ends.append(UInt32(truncatingIfNeeded: position))
            actions.append(MappingTable.action(kind: header & 7, at: start, from: &numbers))
        }
    }

    /// What is done with a scalar.
    subscript(_ scalar: Unicode.Scalar) -> Status {
        guard let run = starts.lastIndex(notAbove: scalar.value), scalar.value < ends[run] else {
            return .disallowed
        }
        switch actions[run] {
        case .valid: return .valid
        case .ignored: return .ignored
        case .replaced(let scalars): return .mapped(scalars)
        case .shifted(let distance): return MappingTable.shifted(scalar, by: distance)
        case .alternating:
            return (scalar.value - starts[run]) & 1 == 0 ? MappingTable.shifted(scalar, by: 1) : .valid
        }
    }

    private static func shifted(_ scalar: Unicode.Scalar, by distance: Int) -> Status {
        let target = Unicode.Scalar(UInt32(truncatingIfNeeded: Int(scalar.value) + distance))
        return target.map { .mapped([$0]) } ?? .disallowed
    }

    private static func action(kind: Int, at start: Int, from numbers: inout PackedNumbers) -> Action {
        switch kind {
        case 0: return .valid
        case 1: return .ignored
        case 2: return .shifted(numbers.signed())
        case 4: return .alternating
        default:
            var scalars: [Unicode.Scalar] = []
            var last = start
            for _ in 0..<numbers.required() {
                last += numbers.signed()
                if let scalar = Unicode.Scalar(UInt32(truncatingIfNeeded: last)) { scalars.append(scalar) }
            }
            return .replaced(by: scalars)
        }
    }
}

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
