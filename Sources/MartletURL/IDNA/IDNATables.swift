/// The Unicode data for internationalized host names, unpacked on first use and then retained.
///
/// Only hosts that are not plain ASCII need it. The generated file contains the data as text, which compiles quickly
/// and has no cost before the first use. Combining classes and categories come from the standard library.
enum IDNATables {
    /// The mapping of UTS #46, for non-transitional processing without STD3 rules (UTS #46 §5).
    static let mapping = RunTable(packed: packedMapping, value: MappingRule.init)
    /// The primary composites of Unicode.
    static let composition = CompositionTable(packed: packedComposites)
    /// The joining types that ``JoinerRule`` needs.
    static let joiningTypes = RunTable(packed: packedJoiningTypes) { kind, _, _, _ in
        JoinerRule.JoiningType(rawValue: kind)
    }
    /// The bidirectional classes that ``BidiRule`` needs.
    static let bidiClasses = RunTable(packed: packedBidiClasses) { kind, _, _, _ in BidiRule.BidiClass(rawValue: kind) }
}

/// A table of a value for each code point, stored as runs of code points that share it.
struct RunTable<Value: Sendable>: Sendable {
    private var starts: [UInt32] = []
    private var values: [Value] = []

    /// Unpacks runs, each written as (length - 1) * 8 + kind and the data of the kind. They cover all code points.
    init(packed: String, value: (_ kind: Int, _ start: Int, _ length: Int, _ numbers: inout PackedNumbers) -> Value) {
        var numbers = PackedNumbers(packed)
        var start = 0
        while let header = numbers.next() {
            let length = header >> 3 + 1
            starts.append(UInt32(truncatingIfNeeded: start))
            values.append(value(header & 7, start, length, &numbers))
            start += length
        }
    }

    /// Returns the value of a scalar, and the scalar's offset in its run.
    func find(_ scalar: Unicode.Scalar) -> (value: Value, offset: Int) {
        // A binary search for the last run that starts at or before the scalar. The first run starts at U+0000.
        var low = 0
        var high = starts.count
        while high - low > 1 {
            let middle = (low + high) / 2
            if starts[middle] <= scalar.value { low = middle } else { high = middle }
        }
        return (values[low], Int(scalar.value - starts[low]))
    }

    subscript(scalar: Unicode.Scalar) -> Value { find(scalar).value }
}

/// The rule of the mapping table for a run of code points.
enum MappingRule: Sendable {
    /// The code points are not allowed in names.
    case disallowed
    /// The code points are removed.
    case ignored
    /// Each code point is replaced by the scalars at its offset.
    case listed([[Unicode.Scalar]])
    /// Capital and small letters alternate: every second code point, from the first, is replaced by its successor.
    case alternating
    /// Each code point is replaced by the scalar at this distance; valid ones, deviation characters included, at 0.
    case shifted(Int)

    /// Unpacks a mapping rule.
    init(kind: Int, start: Int, length: Int, from numbers: inout PackedNumbers) {
        switch kind {
        case 1: self = .shifted(0)
        case 2: self = .ignored
        case 3:
            // Each scalar is relative to the previous one. The lowest bit is set if the code point has another scalar.
            var last = start
            self = .listed(
                (0..<length).map { _ in
                    var scalars: [Unicode.Scalar] = []
                    var number = 1
                    while number & 1 == 1 {
                        number = numbers.next() ?? 0
                        last += PackedNumbers.signed(number >> 1)
                        if let scalar = Unicode.Scalar(UInt32(truncatingIfNeeded: last)) { scalars.append(scalar) }
                    }
                    return scalars
                })
        case 4: self = .alternating
        case 5: self = .shifted(numbers.signed())
        default: self = .disallowed
        }
    }
}

extension RunTable<MappingRule> {
    /// Returns the scalars that replace a scalar: the scalar itself if it is valid, an empty list if it is ignored,
    /// `nil` if it is disallowed.
    func replacement(of scalar: Unicode.Scalar) -> [Unicode.Scalar]? {
        let (rule, offset) = find(scalar)
        let distance: Int
        switch rule {
        case .disallowed: return nil
        case .ignored: return []
        case .listed(let list): return list[offset]
        case .alternating: distance = offset & 1 == 0 ? 1 : 0
        case .shifted(let number): distance = number
        }
        return Unicode.Scalar(UInt32(truncatingIfNeeded: Int(scalar.value) + distance)).map { [$0] }
    }
}

/// Normalization form C for the characters that UTS #46 allows (UAX #15).
///
/// The standard library's NFC is not public API. This is the canonical part of the algorithm with a table of primary
/// composites: pairs, because other characters (singletons, composition exclusions) were mapped or rejected before.
struct CompositionTable: Sendable {
    private struct Pair: Hashable, Sendable {
        let first: Unicode.Scalar
        let second: Unicode.Scalar
    }

    private var composites: [Pair: Unicode.Scalar] = [:]
    private var parts: [Unicode.Scalar: Pair] = [:]

    // Hangul syllables are computed.
    private static let syllableBase: UInt32 = 0xAC00
    private static let leadBase: UInt32 = 0x1100
    private static let vowelBase: UInt32 = 0x1161
    private static let trailBase: UInt32 = 0x11A7
    private static let leadCount: UInt32 = 19
    private static let vowelCount: UInt32 = 21
    private static let trailCount: UInt32 = 28
    private static let syllableCount = leadCount * vowelCount * trailCount

    /// Unpacks the gap, the first and the second part of each composite. The parts are relative to the composite.
    init(packed: String) {
        var numbers = PackedNumbers(packed)
        var code = 0
        while let gap = numbers.next() {
            code += gap
            let first = Unicode.Scalar(UInt32(truncatingIfNeeded: code + numbers.signed()))
            let second = Unicode.Scalar(UInt32(truncatingIfNeeded: code + numbers.signed()))
            guard let composite = Unicode.Scalar(UInt32(truncatingIfNeeded: code)), let first, let second else {
                continue
            }
            let pair = Pair(first: first, second: second)
            composites[pair] = composite
            parts[composite] = pair
        }
    }

    /// Returns the scalars in normalization form C.
    func normalized(_ scalars: [Unicode.Scalar]) -> [Unicode.Scalar] {
        var decomposed: [Unicode.Scalar] = []
        for scalar in scalars { decompose(scalar, into: &decomposed) }
        var ordered = decomposed.map { (scalar: $0, order: $0.properties.canonicalCombiningClass.rawValue) }
        CompositionTable.order(&ordered)
        return compose(ordered)
    }

    /// Appends the full canonical decomposition of one scalar.
    private func decompose(_ scalar: Unicode.Scalar, into output: inout [Unicode.Scalar]) {
        typealias Table = CompositionTable
        if let pair = parts[scalar] {
            // The first part of a composite may be a composite, with at most three levels. The second part never is.
            decompose(pair.first, into: &output)
            output.append(pair.second)
            return
        }
        let index = scalar.value &- Table.syllableBase
        guard index < Table.syllableCount else { return output.append(scalar) }
        let trail = index % Table.trailCount
        let lead = index / Table.trailCount / Table.vowelCount
        let vowel = index / Table.trailCount % Table.vowelCount
        let jamo = [Table.leadBase + lead, Table.vowelBase + vowel, Table.trailBase + trail]
        output += jamo.prefix(trail > 0 ? 3 : 2).compactMap(Unicode.Scalar.init)
    }

    /// Sorts each run of combining marks by class with a stable sort (UAX #15, canonical ordering).
    private static func order(_ scalars: inout [(scalar: Unicode.Scalar, order: UInt8)]) {
        var start = 0
        while start < scalars.count {
            let end = scalars[start...].firstIndex { $0.order == 0 } ?? scalars.count
            scalars[start..<end].sort { $0.order < $1.order }
            start = end + 1
        }
    }

    /// Composes canonically: each scalar joins the last starter unless a scalar of its class or higher is between them.
    private func compose(_ scalars: [(scalar: Unicode.Scalar, order: UInt8)]) -> [Unicode.Scalar] {
        var output: [Unicode.Scalar] = []
        var starter: Int?
        var lastOrder: UInt8 = 0
        for (scalar, order) in scalars {
            if let starter, starter == output.count - 1 || lastOrder < order,
                let composite = composite(output[starter], scalar)
            {
                output[starter] = composite
                continue
            }
            if order == 0 { starter = output.count }
            lastOrder = order
            output.append(scalar)
        }
        return output
    }

    /// Returns the primary composite of two scalars.
    private func composite(_ first: Unicode.Scalar, _ second: Unicode.Scalar) -> Unicode.Scalar? {
        typealias Table = CompositionTable
        let lead = first.value &- Table.leadBase
        let vowel = second.value &- Table.vowelBase
        if lead < Table.leadCount, vowel < Table.vowelCount {
            return Unicode.Scalar(Table.syllableBase + (lead * Table.vowelCount + vowel) * Table.trailCount)
        }
        let syllable = first.value &- Table.syllableBase
        let trail = second.value &- Table.trailBase
        if syllable < Table.syllableCount, syllable % Table.trailCount == 0, trail > 0, trail < Table.trailCount {
            return Unicode.Scalar(first.value + trail)
        }
        return composites[Pair(first: first, second: second)]
    }
}

/// A reader of the numbers in a generated table: five bits per character, lowest first, plus 32 if more follow.
struct PackedNumbers {
    private var bytes: String.UTF8View.Iterator

    init(_ text: String) { bytes = text.utf8.makeIterator() }

    /// Returns the next number; `nil` at the end.
    mutating func next() -> Int? {
        var value = 0
        var shift = 0
        while let byte = bytes.next() {
            let group = PackedNumbers.value(of: byte)
            value |= (group & 31) << shift
            if group < 32 { return value }
            shift += 5
        }
        return nil
    }

    /// Returns the next number, zigzag-decoded; 0 at the end of a table.
    mutating func signed() -> Int { PackedNumbers.signed(next() ?? 0) }

    /// Returns the signed number for a zigzag-coded one.
    static func signed(_ value: Int) -> Int { value & 1 == 0 ? value >> 1 : -(value + 1) >> 1 }

    private static func value(of byte: UInt8) -> Int {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): Int(byte - UInt8(ascii: "A"))
        case UInt8(ascii: "a")...UInt8(ascii: "z"): Int(byte - UInt8(ascii: "a")) + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): Int(byte - UInt8(ascii: "0")) + 52
        case UInt8(ascii: "-"): 62
        default: 63
        }
    }
}
