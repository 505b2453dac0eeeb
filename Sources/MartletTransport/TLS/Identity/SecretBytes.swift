import COpenSSL

/// A pass phrase, kept outside of arrays and strings so that it can be wiped when the last holder lets go of it. The string
/// it was made from is the caller's.
///
/// `@unchecked Sendable`: written once, in `init`, and read from then on.
@safe final class SecretBytes: Hashable, @unchecked Sendable {
    /// The bytes, and a zero behind them for the functions that want one.
    private let start: UnsafeMutablePointer<CChar>
    /// How many bytes there are, without the zero.
    let count: Int

    /// A copy of some text's UTF-8.
    init(_ text: String) {
        count = text.utf8.count
        unsafe start = .allocate(capacity: count + 1)
        var index = 0
        for byte in text.utf8 {
            unsafe (start + index).initialize(to: CChar(bitPattern: byte))
            index += 1
        }
        unsafe (start + count).initialize(to: 0)
    }

    deinit {
        unsafe OPENSSL_cleanse(start, count)
        unsafe start.deallocate()
    }

    /// Whether a C string would end before its end.
    var holdsNUL: Bool {
        (0..<count).contains { index in unsafe start[index] == 0 }
    }

    /// Calls a closure with the bytes, behind which there is a zero.
    func withCString<Value>(_ body: (UnsafePointer<CChar>) -> Value) -> Value {
        unsafe body(UnsafePointer(start))
    }

    /// Compared without regard to where they differ first.
    static func == (left: SecretBytes, right: SecretBytes) -> Bool {
        unsafe left.count == right.count && CRYPTO_memcmp(left.start, right.start, left.count) == 0
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(count)
    }
}
