import MartletTransport
import Synchronization

/// Bytes received and not yet used: one block of memory, filled at its end and emptied from its start.
///
/// It holds no memory until something is received, and gives it back when the connection idles, so that ten thousand
/// connections that wait for a server cost nothing here.
@safe struct ReceiveBuffer: ~Copyable {
    private var storage: UnsafeMutableRawBufferPointer?
    private var start = 0
    private var end = 0

    init() {}

    deinit { if let storage = unsafe storage { unsafe ReceiveMemory.give(storage) } }

    /// How many bytes are not yet used.
    var count: Int { end - start }

    /// Whether all bytes are used.
    var isEmpty: Bool { start == end }

    /// Calls a closure with the unread bytes, or so many of them.
    func withUnread<Value, Failure: Error>(
        _ limit: Int = .max, _ body: (Span<UInt8>) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        guard let storage = unsafe storage, end > start else { return try body(Span()) }
        let length = min(limit, end - start)
        let unread = unsafe UnsafeRawBufferPointer(rebasing: storage[start..<start + length])
        return try body(unsafe Span(_unsafeBytes: unread))
    }

    /// Copies a range of the unread bytes.
    func copy(_ range: Range<Int>, into target: UnsafeMutableRawBufferPointer) {
        guard let storage = unsafe storage, !range.isEmpty else { return }
        unsafe target.copyMemory(
            from: UnsafeRawBufferPointer(
                rebasing: storage[start + range.lowerBound..<start + range.upperBound]))
    }

    /// Drops bytes from the start.
    mutating func consume(_ count: Int) {
        start += count
        if start == end {
            start = 0
            end = 0
        }
    }

    /// Lets a closure fill the free part, which is made at least so large; bytes that are not yet used are kept.
    /// - Parameter body: Returns how many bytes it put there.
    mutating func fill<Outcome, Failure: Error>(
        atLeast minimum: Int, _ body: (UnsafeMutableRawBufferPointer) throws(Failure) -> (count: Int, Outcome)
    ) throws(Failure) -> Outcome {
        reserve(minimum)
        guard let storage = unsafe storage else {
            return unsafe try body(UnsafeMutableRawBufferPointer(start: nil, count: 0)).1
        }
        let free = unsafe UnsafeMutableRawBufferPointer(rebasing: storage[end...])
        let (count, outcome) = unsafe try body(free)
        end += count
        return outcome
    }

    private mutating func reserve(_ minimum: Int) {
        let unread = end - start
        if let storage = unsafe storage {
            if storage.count - end >= minimum { return }
            if storage.count - unread >= minimum {
                unsafe storage.copyMemory(from: UnsafeRawBufferPointer(rebasing: storage[start..<end]))
                (start, end) = (0, unread)
                return
            }
        }
        let capacity = max(ReceiveMemory.blockSize, minimum + unread, (unsafe storage?.count ?? 0) * 2)
        let larger = unsafe ReceiveMemory.take(capacity)
        if let storage = unsafe storage {
            unsafe larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: storage[start..<end]))
            unsafe ReceiveMemory.give(storage)
        }
        unsafe storage = larger
        (start, end) = (0, unread)
    }

    /// Gives the memory back; the bytes that were left are lost.
    mutating func release() {
        if let storage = unsafe storage { unsafe ReceiveMemory.give(storage) }
        unsafe storage = nil
        (start, end) = (0, 0)
    }
}

/// Memory for receive buffers: a few blocks are kept at hand for the whole process.
///
/// A connection holds a block from the first byte of a response to its last, which for a small response is a few
/// microseconds; asking the allocator each time costs as much as parsing the head. What is kept is bounded by the number of
/// slots, whatever the number of connections.
enum ReceiveMemory {
    /// The size of a block, in bytes: room for most heads, and for a small body behind them.
    static let blockSize = 8 * 1024

    /// A place where a block may lie: its address, or zero.
    private final class Slot: Sendable { let address = Atomic<UInt>(0) }

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

/// A buffer to receive into, as a value that may be taken into a lock's closure.
///
/// The compiler must suppose that a pointer taken in there is shared, and refuses it; a number it takes. Whoever makes one
/// keeps the buffer alive until the call it is handed to returns, which never waits.
struct ReceiveTarget: Sendable {
    private let address: UInt
    private let count: Int

    /// The buffer as a value.
    init(_ buffer: UnsafeMutableRawBufferPointer) {
        address = UInt(bitPattern: buffer.baseAddress)
        count = buffer.count
    }

    /// The buffer.
    var buffer: UnsafeMutableRawBufferPointer {
        unsafe UnsafeMutableRawBufferPointer(
            start: UnsafeMutableRawPointer(bitPattern: address), count: count)
    }
}

/// How many bytes of a fast body are awaited together.
///
/// A reader that keeps up with a fast sender is woken for every packet, and waking costs more than copying what came.
/// Where the last quarter of a megabyte came fast, the socket is asked to wake its reader only for so many bytes
/// (`SO_RCVLOWAT`); a short clock beside it sees to it that what comes more slowly is not held back, and ends the asking.
struct ReadBatchRule: Sendable {
    /// How many bytes must have come in ``longestWindow`` for them to be awaited together.
    static let windowByteCount: UInt64 = 256 * 1024
    /// In nanoseconds: 64 MiB/s and more count as fast.
    static let longestWindow: UInt64 = 4_000_000
    /// How many bytes are awaited together.
    static let batchByteCount = 512 * 1024
    /// How long bytes may be held back, at most: one such wait, and batches are over until a window was fast again.
    static let longestDelay = Duration.milliseconds(10)

    private var windowStart: (bytes: UInt64, instant: MonotonicTime)?
    /// Whether batches are awaited.
    private(set) var isBatching = false

    init() {}

    /// Before a wait: how many bytes to wait for.
    /// - Parameters:
    ///   - received: How many bytes of the body have come.
    ///   - remaining: How many must still come; `nil` where that is not known.
    mutating func waitBegins(received: UInt64, remaining: UInt64?, now: MonotonicTime) -> Int {
        if let start = windowStart {
            let count = received &- start.bytes
            if count >= ReadBatchRule.windowByteCount {
                let window = now.nanoseconds &- start.instant.nanoseconds
                // In proportion: one reading may take in several windows.
                isBatching = window / (count / ReadBatchRule.windowByteCount) <= ReadBatchRule.longestWindow
                windowStart = (received, now)
            }
        } else {
            windowStart = (received, now)
        }
        // The last bytes must not be waited for as part of a batch that never fills.
        if isBatching, let remaining, remaining < UInt64(2 * ReadBatchRule.batchByteCount) {
            isBatching = false
        }
        return isBatching ? ReadBatchRule.batchByteCount : 1
    }

    /// The batch did not come in time.
    mutating func waitTimedOut() {
        isBatching = false
        windowStart = nil
    }
}

/// When a lone request waits for its answer awake.
///
/// A thread that goes to sleep is woken again some ten to thirty microseconds late. Where a session has one request at a
/// time and its answers come sooner than that, as from the same machine, watching the socket for that long is quicker, and
/// costs no more processor time than sleeping and being woken does. Each wait that was in vain makes the next one rarer, so
/// that a server farther away sees one in a thousand.
package final class BriefWait: Sendable {
    /// How long a wait lasts at most.
    static let limit = Duration.microseconds(60)
    private static let mostSkipped = 1024

    /// How many requests go by before the next try.
    private let left = Atomic<Int>(0)
    /// How many go by after the next failure.
    private let skipped = Atomic<Int>(1)

    /// For one session, whose next request tries.
    package init() {}

    /// Whether this request is one to try with. Counts it.
    package func isDue() -> Bool {
        let left = left.load(ordering: .relaxed)
        if left == 0 { return true }
        self.left.store(left - 1, ordering: .relaxed)
        return false
    }

    /// Notes how a wait ended.
    func ended(inTime: Bool) {
        let skipped = inTime ? 1 : min(skipped.load(ordering: .relaxed) * 2, BriefWait.mostSkipped)
        self.skipped.store(skipped, ordering: .relaxed)
        if !inTime { left.store(skipped, ordering: .relaxed) }
    }
}
