import MartletTransport
import Synchronization

/// A buffer of received bytes that are not used yet: one block of memory, filled at its end and emptied from its start.
/// It has no memory before bytes are received and while the connection is idle, so that ten thousand waiting
/// connections need no buffers.
@safe struct ReceiveBuffer: ~Copyable {
    private var storage: UnsafeMutableRawBufferPointer?
    private var start = 0
    private var end = 0

    init() {}

    deinit { if let storage = unsafe storage { unsafe ReceiveMemory.give(storage) } }

    /// The number of bytes that are not yet used.
    var count: Int { end - start }

    /// Whether all bytes are used.
    var isEmpty: Bool { start == end }

    func withUnread<Value, Failure: Error>(_ body: (Span<UInt8>) throws(Failure) -> Value) throws(Failure) -> Value {
        guard let storage = unsafe storage, end > start else { return try body(Span()) }
        let unread = unsafe UnsafeRawBufferPointer(rebasing: storage[start..<end])
        return try body(unsafe Span(_unsafeBytes: unread))
    }

    /// Moves bytes from the start into a buffer that is large enough.
    mutating func take(_ count: Int, into target: UnsafeMutableRawBufferPointer) {
        guard let storage = unsafe storage, count > 0 else { return }
        unsafe target.copyMemory(from: UnsafeRawBufferPointer(rebasing: storage[start..<start + count]))
        consume(count)
    }

    /// Drops bytes from the start.
    mutating func consume(_ count: Int) {
        start += count
        if start == end { (start, end) = (0, 0) }
    }

    /// Reads from a stream into the free part, which is enlarged if needed.
    mutating func fill(atLeast minimum: Int, from stream: any ByteStream) throws(TransportError) -> ReadOutcome {
        let storage = unsafe reserve(minimum)
        let outcome = unsafe try stream.read(into: UnsafeMutableRawBufferPointer(rebasing: storage[end...]))
        if case .bytes(let count) = outcome { end += count }
        return outcome
    }

    /// Enlarges the free part if needed, and returns the whole block.
    private mutating func reserve(_ minimum: Int) -> UnsafeMutableRawBufferPointer {
        let unread = end - start
        if let storage = unsafe storage {
            if storage.count - end >= minimum { return unsafe storage }
            if storage.count - unread >= minimum {
                unsafe storage.copyMemory(from: UnsafeRawBufferPointer(rebasing: storage[start..<end]))
                (start, end) = (0, unread)
                return unsafe storage
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
        return unsafe larger
    }

    /// Releases the memory; unused bytes are lost.
    mutating func release() {
        if let storage = unsafe storage { unsafe ReceiveMemory.give(storage) }
        unsafe storage = nil
        (start, end) = (0, 0)
    }
}

/// Memory for receive buffers: a few free blocks that the whole process reuses.
///
/// A connection holds a block from the first byte of a response to its last. For a small response this takes a few
/// microseconds, so calling the allocator each time would cost as much as parsing the head.
enum ReceiveMemory {
    /// The size of a block, in bytes: room for most heads, and for a small body after them.
    static let blockSize = 8 * 1024

    /// The slots, each with the address of a block, or zero: one for each thread that is expected to receive at the same
    /// time.
    private static let slots = InlineArray<4, Atomic<UInt>> { _ in Atomic(0) }

    /// Returns an uninitialized block of at least that many bytes, to be returned with ``give(_:)``.
    static func take(_ byteCount: Int) -> UnsafeMutableRawBufferPointer {
        if byteCount <= blockSize {
            for index in slots.indices where slots[index].load(ordering: .relaxed) != 0 {
                let address = slots[index].exchange(0, ordering: .acquiring)
                if let start = unsafe UnsafeMutableRawPointer(bitPattern: address) {
                    return unsafe UnsafeMutableRawBufferPointer(start: start, count: blockSize)
                }
            }
        }
        return UnsafeMutableRawBufferPointer.allocate(byteCount: max(blockSize, byteCount), alignment: 16)
    }

    /// Returns a block to the free slots.
    static func give(_ block: UnsafeMutableRawBufferPointer) {
        guard block.count == blockSize else {
            unsafe block.deallocate()
            return
        }
        let address = UInt(bitPattern: block.baseAddress)
        for index in slots.indices where slots[index].load(ordering: .relaxed) == 0 {
            if slots[index].compareExchange(expected: 0, desired: address, ordering: .releasing).exchanged { return }
        }
        unsafe block.deallocate()
    }
}

/// A buffer to receive into, as a value that the closure of a lock may capture. The compiler rejects a captured
/// pointer, which could be shared, but accepts a number. The buffer must exist until the call with this value returns.
struct ReceiveTarget: Sendable {
    private let address: UInt
    private let count: Int

    init(_ buffer: UnsafeMutableRawBufferPointer) {
        address = UInt(bitPattern: buffer.baseAddress)
        count = buffer.count
    }

    var buffer: UnsafeMutableRawBufferPointer {
        unsafe UnsafeMutableRawBufferPointer(start: UnsafeMutableRawPointer(bitPattern: address), count: count)
    }

    /// Passes the first bytes of the buffer to a closure.
    func withBytes(_ count: Int, _ body: (Span<UInt8>) -> Void) {
        unsafe UnsafeRawBufferPointer(rebasing: buffer.prefix(count)).withMemoryRebound(to: UInt8.self) { bytes in
            unsafe body(bytes.span)
        }
    }
}
