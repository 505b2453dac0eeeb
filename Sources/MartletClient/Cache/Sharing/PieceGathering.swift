/// Up to which size pieces of a body are gathered into one, in bytes: a server may send them byte by byte, and each would
/// cost as much as a large one.
private let gatheredByteCount = 16 * 1024

extension RangeReplaceableCollection
where Element == [UInt8], Self: BidirectionalCollection & MutableCollection {
    /// Adds a piece, to the last one where both are small.
    mutating func gather(_ bytes: [UInt8]) {
        guard !isEmpty else { return append(bytes) }
        let last = index(before: endIndex)
        if self[last].count + bytes.count <= gatheredByteCount {
            self[last] += bytes
        } else {
            append(bytes)
        }
    }
}
