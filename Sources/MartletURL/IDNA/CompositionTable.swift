/// Normalisation form C for what UTS #46 lets through (UAX #15).
///
/// The standard library's own NFC is no public API, so this is the canonical part of the algorithm over a
/// table of the primary composites. Characters that are never in NFC (singletons, composition exclusions)
/// have been mapped away or disallowed before it runs, which is why pairs suffice.
struct CompositionTable: Sendable {
    private var pairs: [UInt64: Unicode.Scalar] = [:]
    private var parts: [Unicode.Scalar: (first: Unicode.Scalar, second: Unicode.Scalar)] = [:]

    private static let hangulBase: UInt32 = 0xAC00
    private static let leadBase: UInt32 = 0x1100
    private static let vowelBase: UInt32 = 0x1161
    private static let trailBase: UInt32 = 0x11A7
    private static let leadCount: UInt32 = 19
    private static let vowelCount: UInt32 = 21
    private static let trailCount: UInt32 = 28

    /// Unpacks gap, first and second of each composite, the latter two relative to it.
    init(packed: String) {
        var numbers = PackedNumbers(packed)
        var code = 0
        while let gap = numbers.next() {
            code += gap
            let first = Unicode.Scalar(UInt32(truncatingIfNeeded: code + numbers.signed()))
            let second = Unicode.Scalar(UInt32(truncatingIfNeeded: code + numbers.signed()))
            guard let composite = Unicode.Scalar(UInt32(truncatingIfNeeded: code)), let first, let second
            else { continue }
            pairs[CompositionTable.key(first, second)] = composite
            parts[composite] = (first, second)
        }
    }

    /// The scalars in normalisation form C.
    func normalized(_ scalars: [Unicode.Scalar]) -> [Unicode.Scalar] {
        var decomposed: [Unicode.Scalar] = []
        for scalar in scalars { decompose(scalar, into: &decomposed) }
        let classes = IDNATables.combiningClassTable
        var ordered: [(scalar: Unicode.Scalar, order: UInt8)] = decomposed.map { ($0, classes[$0]) }
        CompositionTable.orderMarks(&ordered)
        return compose(ordered)
    }

    /// Full canonical decomposition of one scalar.
    private func decompose(_ scalar: Unicode.Scalar, into output: inout [Unicode.Scalar]) {
        if let pair = parts[scalar] {
            // A composite's first part may be one itself, its second never is; the chain is three long at
            // most.
            decompose(pair.first, into: &output)
            decompose(pair.second, into: &output)
            return
        }
        let index = scalar.value &- CompositionTable.hangulBase
        guard index < CompositionTable.leadCount * CompositionTable.vowelCount * CompositionTable.trailCount
        else {
            output.append(scalar)
            return
        }
        let trail = index % CompositionTable.trailCount
        let vowel = index / CompositionTable.trailCount % CompositionTable.vowelCount
        let lead = index / CompositionTable.trailCount / CompositionTable.vowelCount
        let jamo = [
            CompositionTable.leadBase + lead, CompositionTable.vowelBase + vowel,
            CompositionTable.trailBase + trail,
        ]
        for (position, value) in jamo.enumerated() where position < 2 || trail > 0 {
            if let part = Unicode.Scalar(value) { output.append(part) }
        }
    }

    /// Sorts each run of combining marks by class, equals staying in order (UAX #15, canonical ordering).
    private static func orderMarks(_ scalars: inout [(scalar: Unicode.Scalar, order: UInt8)]) {
        var start = 0
        while start < scalars.count {
            guard scalars[start].order != 0 else {
                start += 1
                continue
            }
            let end = scalars[start...].firstIndex { $0.order == 0 } ?? scalars.count
            let sorted = scalars[start..<end].enumerated().sorted {
                ($0.element.order, $0.offset) < ($1.element.order, $1.offset)
            }
            scalars.replaceSubrange(start..<end, with: sorted.map(\.element))
            start = end
        }
    }

    /// Canonical composition: each scalar joins the last starter unless something of its class or higher is
    /// between.
    private func compose(_ scalars: [(scalar: Unicode.Scalar, order: UInt8)]) -> [Unicode.Scalar] {
        var output: [Unicode.Scalar] = []
        var starter: Int?
        var lastOrder: UInt8 = 0
        for (scalar, order) in scalars {
            if let starter {
                let isAdjacent = starter == output.count - 1
                if isAdjacent || lastOrder < order, let composite = composite(output[starter], scalar) {
                    output[starter] = composite
                    continue
                }
            }
            if order == 0 { starter = output.count }
            lastOrder = order
            output.append(scalar)
        }
        return output
    }

    /// The primary composite of two scalars, Hangul by arithmetic.
    private func composite(_ first: Unicode.Scalar, _ second: Unicode.Scalar) -> Unicode.Scalar? {
        let lead = first.value &- CompositionTable.leadBase
        let vowel = second.value &- CompositionTable.vowelBase
        if lead < CompositionTable.leadCount, vowel < CompositionTable.vowelCount {
            let index = (lead * CompositionTable.vowelCount + vowel) * CompositionTable.trailCount
            return Unicode.Scalar(CompositionTable.hangulBase + index)
        }
        let syllable = first.value &- CompositionTable.hangulBase
        let trail = second.value &- CompositionTable.trailBase
        let syllables = CompositionTable.leadCount * CompositionTable.vowelCount * CompositionTable.trailCount
        if syllable < syllables, syllable % CompositionTable.trailCount == 0, trail > 0,
            trail < CompositionTable.trailCount
        {
            return Unicode.Scalar(first.value + trail)
        }
        return pairs[CompositionTable.key(first, second)]
    }

    private static func key(_ first: Unicode.Scalar, _ second: Unicode.Scalar) -> UInt64 {
        UInt64(first.value) << 32 | UInt64(second.value)
    }
}

/// Reads the numbers of a generated table: five bits a character, lowest first, bit 32 saying that more
/// follow.
struct PackedNumbers {
    private var bytes: String.UTF8View.Iterator

    /// The numbers of a packed text.
    init(_ text: String) { bytes = text.utf8.makeIterator() }

    /// The next number; nil at the end.
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

    /// The next number where one must follow; 0 past the end of a table, which the generator never writes.
    mutating func required() -> Int { next() ?? 0 }

    /// The next number, zigzag-coded.
    mutating func signed() -> Int {
        let value = required()
        return value & 1 == 0 ? value >> 1 : -(value + 1) >> 1
    }

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
