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

    /// An entry of a head and a body.
    package init(head: StoredHead, body: [UInt8]) {
        variant = StoredVariant(head: head, bodyLength: UInt64(body.count))
        self.body = Self.exact(body)
        var cost = 512 + body.count + head.key.url.utf8.count + head.key.partition.utf8.count
        cost += head.reason.utf8.count
        for fields in [head.fields, head.trailers].compactMap(\.self) {
            for index in fields.indices {
                cost += fields.name(at: index).count + fields.value(at: index).count + 16
            }
        }
        for selection in head.selections {
            cost += selection.name.utf8.count + (selection.value?.utf8.count ?? 0) + 32
        }
        self.cost = cost
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
