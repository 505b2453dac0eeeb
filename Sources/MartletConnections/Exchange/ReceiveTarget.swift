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
