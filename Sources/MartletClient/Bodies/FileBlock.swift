/// A block of memory between a body and a file: filled by the task that receives, emptied by the worker that writes.
///
/// One of them has it at a time; handing it over is done under the lock of ``WriteBehind``.
@safe final class FileBlock: @unchecked Sendable {
    private let memory: UnsafeMutableRawBufferPointer
    /// How many bytes there are.
    private(set) var count = 0

    init(capacity: Int) {
        unsafe memory = UnsafeMutableRawBufferPointer.allocate(byteCount: max(1, capacity), alignment: 4096)
    }

    deinit {
        unsafe memory.deallocate()
    }

    /// For how many more bytes there is room.
    var freeByteCount: Int { unsafe memory.count - count }

    var isFull: Bool { unsafe count == memory.count }

    /// Lets a closure fill the free part.
    /// - Parameter body: Returns how many bytes it put there, and what else it has to say.
    func fill<Value, Failure: Error>(
        _ body: (UnsafeMutableRawBufferPointer) throws(Failure) -> (Int, Value)
    ) throws(Failure) -> Value {
        let (added, value) = unsafe try body(UnsafeMutableRawBufferPointer(rebasing: memory[count...]))
        count += added
        return value
    }

    /// Copies as much as there is room for; how much that was.
    func append(_ bytes: ArraySlice<UInt8>) -> Int {
        let length = unsafe min(bytes.count, memory.count - count)
        unsafe bytes.withUnsafeBytes { source in
            unsafe memory[count...].copyBytes(from: source.prefix(length))
        }
        count += length
        return length
    }

    /// Hands all bytes to a closure and is empty then, also where it throws.
    func empty<Failure: Error>(_ body: (RawSpan) throws(Failure) -> Bool) throws(Failure) -> Bool {
        defer { count = 0 }
        return try body(unsafe UnsafeRawBufferPointer(rebasing: memory[..<count]).bytes)
    }
}
