package import MartletClient
import MartletStorage
import SystemPackage

/// The form of a download's file: a preamble of 16 bytes, and what is known of it.
///
/// | offset | bytes | |
/// |---|---|---|
/// | 0 | 4 | `MRTd` |
/// | 4 | 2 | version, 2; 1 where nothing can be noted of a file that is about to get its name |
/// | 6 | 2 | 0 |
/// | 8 | 4 | length of what follows the preamble, which ends the file |
/// | 12 | 4 | CRC-32 of the 12 bytes before and of what follows |
///
/// Numbers are little endian, texts stand behind their lengths. Every version keeps the preamble, so that a damaged file is
/// told from one of a later version. User info of URLs and fields that hold credentials are not written.
package enum DownloadItemCodec {
    /// The version that is written, and the latest that is read.
    package static let version: UInt16 = 2
    /// The longest file.
    package static let byteLimit = 4 << 20
    /// The bytes before what is known of the download.
    package static let preambleByteCount = 16
    private static let magic: [UInt8] = [0x4D, 0x52, 0x54, 0x64]

    /// The bytes of a download's file.
    /// - Throws: An ``HTTPError`` with the code `.invalidRequest` where the options cannot be written, or are too large.
    package static func encode(_ item: DownloadItem) throws(HTTPError) -> [UInt8] {
        var writer = RecordWriter()
        writer.write(raw: magic)
        writer.write(version)
        writer.write(UInt16(0))
        writer.write(UInt32(0))
        writer.write(UInt32(0))
        try write(item, to: &writer)
        let count = writer.bytes.count - preambleByteCount
        guard writer.bytes.count <= byteLimit else {
            throw HTTPError(
                .invalidRequest, phase: .preparing,
                message: "the download's URL, target and options take \(count) bytes, too many to be kept")
        }
        writer.overwrite(UInt32(truncatingIfNeeded: count), at: 8)
        writer.overwrite(checksum(of: writer.bytes), at: 12)
        return writer.bytes
    }

    /// The download in a file's bytes.
    package static func decode(_ bytes: [UInt8]) throws(DownloadItemFault) -> DownloadItem {
        guard bytes.count >= preambleByteCount, bytes.count <= byteLimit else { throw .length }
        guard bytes.starts(with: magic) else { throw .foreign }
        let (version, flags, count, expected): (UInt16, UInt16, UInt32, UInt32)
        do throws(RecordReader.Fault) {
            var preamble = RecordReader(bytes[4..<preambleByteCount])
            version = try preamble.number("version")
            flags = try preamble.number("flags")
            count = try preamble.number("length")
            expected = try preamble.number("checksum")
        } catch {
            throw .record(error)
        }
        guard UInt64(count) == UInt64(bytes.count - preambleByteCount) else { throw .length }
        guard checksum(of: bytes) == expected else { throw .checksum }
        guard version <= Self.version else { throw .version(version) }
        guard version > 0, flags == 0 else { throw .foreign }
        do throws(RecordReader.Fault) {
            var reader = RecordReader(bytes[preambleByteCount...])
            let item = try item(&reader, version: version)
            guard reader.remainingCount == 0 else { throw reader.fault("end") }
            return item
        } catch {
            throw .record(error)
        }
    }

    private static func checksum(of bytes: [UInt8]) -> UInt32 {
        var checksum = RecordChecksum()
        checksum.update(bytes.span.extracting(0..<12))
        checksum.update(bytes.span.extracting(preambleByteCount..<bytes.count))
        return checksum.value
    }
}
