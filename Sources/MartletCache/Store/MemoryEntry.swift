import MartletWire

/// A response in memory, whole and unchanging.
package final class MemoryEntry: Sendable {
    /// What is decided by: the head, read once, so that a hit reads no fields.
    package let variant: StoredVariant
    /// All but the body.
    package var head: StoredHead { variant.head }
    /// The body.
    package let body: [UInt8]
    /// What it counts for in bytes: the body, the texts of the head, and 512 for what holds them.
    package let cost: Int
    /// Which body it is: the generation of the entry on disk, where there is one.
    package let representation: UInt64
    /// Where it is on disk; `nil` where it is not, or nobody knows.
    let name: EntryName?

    /// An entry of a head and a body, which is another body than all others.
    package convenience init(head: StoredHead, body: [UInt8]) {
        self.init(
            StoredVariant(head: head, bodyLength: UInt64(body.count)), body: body,
            representation: .random(in: 1 ... .max), name: nil)
    }

    /// An entry of a body that has its number.
    init(_ variant: StoredVariant, body: [UInt8], representation: UInt64, name: EntryName?) {
        self.variant = variant
        self.body = Self.exact(body)
        self.representation = representation
        self.name = name
        cost = Self.cost(of: variant.head) + body.count
    }

    /// What an entry of a head costs, its body not counted.
    static func cost(of head: StoredHead) -> Int {
        var cost = 512 + head.key.url.utf8.count + head.key.partition.utf8.count
        cost += head.reason.utf8.count
        for fields in [head.fields, head.trailers].compactMap(\.self) {
            for index in fields.indices {
                cost += fields.name(at: index).count + fields.value(at: index).count + 16
            }
        }
        for selection in head.selections {
            cost += selection.name.utf8.count + (selection.value?.utf8.count ?? 0) + 32
        }
        return cost
    }

    /// The same body under another head.
    func updated(to head: StoredHead) -> MemoryEntry {
        MemoryEntry(
            StoredVariant(head: head, bodyLength: UInt64(body.count)), body: body,
            representation: representation, name: name)
    }

    /// The same entry, which is on disk by now.
    func stored(as name: EntryName) -> MemoryEntry {
        MemoryEntry(variant, body: body, representation: representation, name: name)
    }

    /// The bytes without the room behind them: an array that grew as the body came may be twice as large as it.
    private static func exact(_ body: [UInt8]) -> [UInt8] {
        guard body.capacity > body.count + body.count / 8 + 64 else { return body }
        var copy: [UInt8] = []
        copy.reserveCapacity(body.count)
        copy.append(contentsOf: body)
        return copy
    }
}
