import Synchronization

/// Memory for receive buffers: a few blocks are kept at hand for the whole process.
///
/// A connection holds a block from the first byte of a response to its last, which for a small response is a few
/// microseconds; asking the allocator each time costs as much as parsing the head. What is kept is bounded by the number of
/// slots, whatever the number of connections.
enum ReceiveMemory {
    /// The size of a block, in bytes: room for most heads, and for a small body behind them.
    static let blockSize = 8 * 1024

    /// A place where a block may lie: its address, or zero.
    private final class Slot: Sendable {
        let address = Atomic<UInt>(0)
    }

    /// As many as threads can be expected to receive at once.
    private static let slots = (0..<4).map { _ in Slot() }

    /// A block of at least that many bytes, uninitialised. Give it back with ``give(_:)``.
    static func take(_ byteCount: Int) -> UnsafeMutableRawBufferPointer {
        if byteCount <= blockSize {
            for slot in slots where slot.address.load(ordering: .relaxed) != 0 {
                let address = slot.address.exchange(0, ordering: .acquiring)
                if let start = unsafe UnsafeMutableRawPointer(bitPattern: address) {
                    return unsafe UnsafeMutableRawBufferPointer(start: start, count: blockSize)
                }
            }
        }
        return UnsafeMutableRawBufferPointer.allocate(byteCount: max(blockSize, byteCount), alignment: 16)
    }

    /// Takes a block back.
    static func give(_ block: UnsafeMutableRawBufferPointer) {
        guard block.count == blockSize else {
            unsafe block.deallocate()
            return
        }
        let address = UInt(bitPattern: block.baseAddress)
        for slot in slots where slot.address.load(ordering: .relaxed) == 0 {
            let isKept = slot.address.compareExchange(expected: 0, desired: address, ordering: .releasing)
                .exchanged
            if isKept { return }
        }
        unsafe block.deallocate()
    }
}
