import CZlib

/// The checksum of stored bytes: CRC-32 as gzip and PNG have it (polynomial 0xEDB88320, reflected), by zlib.
///
/// It tells a damaged file from a whole one, any single flipped bit for certain. It is no defence against somebody who
/// may write the file.
package struct RecordChecksum: Sendable {
    /// The checksum of all that was added.
    package private(set) var value: UInt32 = 0

    /// The checksum of no bytes, to be added to.
    package init() {}

    /// The checksum of bytes.
    package init(_ bytes: Span<UInt8>) {
        update(bytes)
    }

    /// Adds bytes.
    package mutating func update(_ bytes: Span<UInt8>) {
        unsafe bytes.withUnsafeBufferPointer { bytes in
            // Without an address it would begin anew.
            guard let start = bytes.baseAddress, !bytes.isEmpty else { return }
            value = UInt32(truncatingIfNeeded: unsafe crc32_z(UInt(value), start, z_size_t(bytes.count)))
        }
    }
}
