import MartletCore
import MartletWire

/// The rules of a list of public suffixes, packed: their names one behind the other, and a hash table of
/// where each is.
///
/// Ten thousand rules take some 300 KiB, and finding one costs no allocation. Names are hashed from their
/// last byte to the first, so that one walk over a host asks for all its ends.
struct PublicSuffixRules: Sendable {
    /// What rules there are of a name.
    struct Kind: OptionSet, Sendable {
        let rawValue: UInt8

        /// The name is a public suffix.
        static let plain = Kind(rawValue: 1)
        /// Every label before the name makes a public suffix: `*.name`.
        static let wildcard = Kind(rawValue: 2)
        /// The name is none, though a wildcard says so: `!name`.
        static let exception = Kind(rawValue: 4)
    }

    /// The longest name of a rule, in bytes: the longest that a host can have.
    static let nameLimit = 253

    /// How many rules there are.
    private(set) var count = 0
    /// Of each name its kinds, its length and its bytes.
    private var names: [UInt8] = []
    /// Where each name is in `names`, plus one; 0 is a vacant place. A power of two, at most half of them
    /// taken.
    private var places: [UInt32]
    /// How many places are taken.
    private var taken = 0

    /// No rules, with room for so many.
    init(capacity: Int) {
        var size = 16
        while size < 2 * min(capacity, 1 << 24) { size *= 2 }
        places = Array(repeating: 0, count: size)
    }

    /// Adds a rule of a name in lower case and A-labels; returns whether there is none of its length.
    mutating func insert(_ name: ArraySlice<UInt8>, _ kind: Kind) -> Bool {
        guard !name.isEmpty, name.count <= PublicSuffixRules.nameLimit, names.count < 1 << 31 else {
            return false
        }
        count += 1
        let place = self.place(of: name, hash: PublicSuffixRules.hash(name))
        if places[place] != 0 {
            names[Int(places[place]) - 1] |= kind.rawValue
            return true
        }
        places[place] = UInt32(names.count + 1)
        taken += 1
        names.append(kind.rawValue)
        names.append(UInt8(name.count))
        names.append(contentsOf: name)
        if 2 * taken > places.count { grow() }
        return true
    }

    /// How many bytes of a name, from its end, are its public suffix; of a name without a trailing dot.
    func suffixLength(of name: [UInt8]) -> Int {
        var hash = PublicSuffixRules.hashBasis
        var longest: Int?
        var index = name.endIndex
        while index > 0 {
            index -= 1
            hash = PublicSuffixRules.mixed(hash, name[index])
            // Here begins a label, which is asked for with all that is behind it.
            guard index == 0 || name[index - 1] == UInt8(ascii: ".") else { continue }
            let length = name.count - index
            // What is longer than the longest rule is in none; a host can be that long only when it is made
            // by hand.
            guard length <= PublicSuffixRules.nameLimit else { break }
            if longest == nil { longest = length }
            guard let kind = kind(of: name[index...], hash: hash) else { continue }
            if kind.contains(.exception) {
                let label = name[index...].prefix { $0 != UInt8(ascii: ".") }
                return max(length - label.count - 1, 0)
            }
            if kind.contains(.plain) { longest = max(longest ?? 0, length) }
            if kind.contains(.wildcard), index > 1 {
                let label = name[..<(index - 1)].reversed().prefix { $0 != UInt8(ascii: ".") }
                longest = max(longest ?? 0, length + 1 + label.count)
            }
        }
        return longest ?? name.count
    }

    private func kind(of name: ArraySlice<UInt8>, hash: UInt64) -> Kind? {
        let entry = places[place(of: name, hash: hash)]
        return entry == 0 ? nil : Kind(rawValue: names[Int(entry) - 1])
    }

    /// Where a name is, or the vacant place where it belongs.
    private func place(of name: ArraySlice<UInt8>, hash: UInt64) -> Int {
        let mask = places.count - 1
        var place = Int(truncatingIfNeeded: hash ^ (hash >> 32)) & mask
        while places[place] != 0, !isName(name, at: Int(places[place]) - 1) { place = (place + 1) & mask }
        return place
    }

    private func isName(_ name: ArraySlice<UInt8>, at offset: Int) -> Bool {
        guard Int(names[offset + 1]) == name.count else { return false }
        return names[(offset + 2)..<(offset + 2 + name.count)].elementsEqual(name)
    }

    private mutating func grow() {
        let old = places
        places = Array(repeating: 0, count: 2 * old.count)
        for entry in old where entry != 0 {
            let begin = Int(entry) + 1
            let name = names[begin..<(begin + Int(names[begin - 1]))]
            places[place(of: name, hash: PublicSuffixRules.hash(name))] = entry
        }
    }

    private static let hashBasis: UInt64 = 0xCBF2_9CE4_8422_2325

    /// One step of FNV-1a.
    @inline(__always)
    private static func mixed(_ hash: UInt64, _ byte: UInt8) -> UInt64 {
        (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3
    }

    private static func hash(_ name: ArraySlice<UInt8>) -> UInt64 {
        var hash = hashBasis
        for byte in name.reversed() { hash = mixed(hash, byte) }
        return hash
    }
}
