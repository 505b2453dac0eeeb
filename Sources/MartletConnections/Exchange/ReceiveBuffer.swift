/// Bytes received and not yet used: one block of memory, filled at its end and emptied from its start.
///
/// It holds no memory until something is received, and gives it back when the connection idles, so that ten thousand
/// connections that wait for a server cost nothing here.
@safe struct ReceiveBuffer: ~Copyable {
    private var storage: UnsafeMutableRawBufferPointer?
    private var start = 0
    private var end = 0

    init() {}

    deinit {
        if let storage = unsafe storage { unsafe ReceiveMemory.give(storage) }
    }

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
