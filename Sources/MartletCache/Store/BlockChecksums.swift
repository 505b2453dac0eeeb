import MartletStorage

/// Checksums of a body, one for each block, so that no byte of it is handed out before the block it lies in was checked.
struct BlockChecksums: Equatable, Sendable {
    /// The bytes of a block but the last.
    static let blockByteCount = 65_536

    /// The checksums of whole blocks, and after ``finish()`` of the rest.
    private(set) var values: [UInt32] = []
    private var current = CastagnoliChecksum()
    private var pendingCount = 0

    /// Of no bytes, to be added to.
    init() {}

    /// As they were stored.
    init(values: [UInt32]) {
        self.values = values
    }

    /// How many a body of that length has.
    static func count(of byteCount: UInt64) -> UInt64 {
        byteCount / UInt64(blockByteCount) + (byteCount % UInt64(blockByteCount) == 0 ? 0 : 1)
    }

    /// Adds bytes of the body.
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

    /// Ends the block that was begun.
    mutating func finish() {
        guard pendingCount > 0 else { return }
        values.append(current.value)
        current = CastagnoliChecksum()
        pendingCount = 0
    }

    static func == (left: BlockChecksums, right: BlockChecksums) -> Bool { left.values == right.values }
}
