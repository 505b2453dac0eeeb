import MartletStorage

/// The name of a key on disk: SipHash-2-4, 128 bits, of URL and partition, the same in every process.
///
/// An attacker may choose URLs that collide, but a collision only causes a miss: the full key is compared.
struct CacheDigest: Hashable, Sendable {
    let high: UInt64
    let low: UInt64
}

extension CacheDigest {
    init(_ key: CacheKey) {
        var state = State()
        // The length of the first text precedes both texts, so that different keys have different bytes.
        state.update(UInt64(key.url.utf8.count))
        for byte in key.url.utf8 { state.update(byte) }
        for byte in key.partition.utf8 { state.update(byte) }
        (high, low) = state.finish()
    }

    /// The digest as 32 hexadecimal digits in lower case.
    var text: String { Self.text(of: high) + Self.text(of: low) }

    /// Parses 32 hexadecimal digits in lower case; `nil` for any other text.
    init?(text: Substring.UTF8View) {
        guard text.count == 32, let high = Self.number(text.prefix(16)), let low = Self.number(text.suffix(16)) else {
            return nil
        }
        self.init(high: high, low: low)
    }

    /// Returns the 16 hexadecimal digits of a number, in lower case.
    static func text(of number: UInt64) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }

    /// Returns the value of 16 hexadecimal digits in lower case; `nil` for any other text.
    static func number(_ text: Substring.UTF8View) -> UInt64? {
        guard text.count == 16, text.allSatisfy({ 0x30...0x39 ~= $0 || 0x61...0x66 ~= $0 }) else { return nil }
        return UInt64(Substring(text), radix: 16)
    }

    /// SipHash-2-4 with 128 bits of output (Aumasson, Bernstein).
    private struct State {
        private var v0: UInt64 = 0x736F_6D65_7073_6575 ^ 0x6D61_7274_6C65_7431
        private var v1: UInt64 = 0x646F_7261_6E64_6F6D ^ 0x6361_6368_6573_746F ^ 0xEE
        private var v2: UInt64 = 0x6C79_6765_6E65_7261 ^ 0x6D61_7274_6C65_7431
        private var v3: UInt64 = 0x7465_6462_7974_6573 ^ 0x6361_6368_6573_746F
        private var pending: UInt64 = 0
        private var count: UInt64 = 0

        mutating func update(_ number: UInt64) {
            for shift in stride(from: UInt64(0), to: 64, by: 8) { update(UInt8(truncatingIfNeeded: number >> shift)) }
        }

        mutating func update(_ byte: UInt8) {
            pending |= UInt64(byte) << (8 &* (count & 7))
            count &+= 1
            if count & 7 == 0 { compress() }
        }

        private mutating func compress() {
            v3 ^= pending
            for _ in 0..<2 { round() }
            v0 ^= pending
            pending = 0
        }

        mutating func finish() -> (UInt64, UInt64) {
            pending |= count << 56
            compress()
            v2 ^= 0xEE
            for _ in 0..<4 { round() }
            let first = v0 ^ v1 ^ v2 ^ v3
            v1 ^= 0xDD
            for _ in 0..<4 { round() }
            return (first, v0 ^ v1 ^ v2 ^ v3)
        }

        private mutating func round() {
            v0 &+= v1
            v1 = v1 << 13 | v1 >> 51
            v1 ^= v0
            v0 = v0 << 32 | v0 >> 32
            v2 &+= v3
            v3 = v3 << 16 | v3 >> 48
            v3 ^= v2
            v0 &+= v3
            v3 = v3 << 21 | v3 >> 43
            v3 ^= v0
            v2 &+= v1
            v1 = v1 << 17 | v1 >> 47
            v1 ^= v2
            v2 = v2 << 32 | v2 >> 32
        }
    }
}

/// The checksums of a body, one per block. Each block is checked before any of its bytes is returned.
struct BlockChecksums: Equatable, Sendable {
    /// The size of each block but the last, in bytes.
    static let blockByteCount = 65_536

    /// The checksums of complete blocks, and after ``finish()`` of the rest.
    private(set) var values: [UInt32] = []
    private var current = CastagnoliChecksum()
    private var pendingCount = 0

    init() {}

    init(values: [UInt32]) { self.values = values }

    /// Creates the checksums of all of these bytes.
    init(of bytes: Span<UInt8>) {
        update(bytes)
        finish()
    }

    /// Returns the number of checksums of a body of this length.
    static func count(of byteCount: UInt64) -> UInt64 {
        byteCount / UInt64(blockByteCount) + (byteCount % UInt64(blockByteCount) == 0 ? 0 : 1)
    }

    mutating func update(_ bytes: Span<UInt8>) {
        var offset = 0
        while offset < bytes.count {
            let count = min(bytes.count - offset, Self.blockByteCount - pendingCount)
            current.update(bytes.extracting(offset..<(offset + count)))
            offset += count
            pendingCount += count
            if pendingCount == Self.blockByteCount { finish() }
        }
    }

    mutating func finish() {
        guard pendingCount > 0 else { return }
        values.append(current.value)
        current = CastagnoliChecksum()
        pendingCount = 0
    }

    static func == (left: BlockChecksums, right: BlockChecksums) -> Bool { left.values == right.values }
}
