package import MartletStorage
import MartletWire

/// The format of an entry's file: a preamble of 16 bytes, the metadata, and the body if that is small.
///
/// | offset | bytes | |
/// |---|---|---|
/// | 0 | 4 | `MRTe` |
/// | 4 | 2 | version, 2 |
/// | 6 | 2 | 0 |
/// | 8 | 4 | length of the metadata |
/// | 12 | 4 | CRC-32C of the 12 bytes before and of the metadata |
/// | 16 | | metadata, followed by an inline body to the file's end |
///
/// Numbers are little endian; texts and fields follow their lengths. The metadata contains a CRC-32C of each 64 KiB of
/// the body. Decoded entries are encoded to the same bytes again.
package enum EntryCodec {
    /// The version that is written, and the only one that is read.
    package static let version: UInt16 = 2
    /// The maximum length of an inline body, in bytes.
    package static let inlineLimit = 32_768
    /// The maximum length of the metadata: heads are much smaller; checksums of 128 GiB take 8 MiB.
    package static let metadataLimit = 16_777_216
    package static let preambleByteCount = 16
    private static let magic: [UInt8] = [0x4D, 0x52, 0x54, 0x65]
    /// The maximum number of fields of a head or trailer; more than any message has.
    private static let fieldLimit = 16_384
    /// The maximum number of selecting fields.
    private static let selectionLimit = 256
    /// The maximum length of a text, in bytes.
    private static let textLimit = 1_048_576

    /// Encodes an entry; `nil` for a head beyond the limits, which is not stored.
    package static func encode(_ entry: StoredEntry) -> [UInt8]? {
        let head = entry.head
        guard isWithinLimits(head) else { return nil }
        var writer = RecordWriter()
        writer.reserve(1024 + (entry.inlineBody?.count ?? 0) + entry.checksums.values.count * 4)
        writer.write(raw: magic)
        writer.write(version)
        writer.write(UInt16(0))
        // Length and checksum of the metadata, which are known at the end.
        writer.write(UInt64(0))
        writer.write(entry.generation)
        writer.write(entry.bodyByteCount)
        writer.write(entry.inlineBody != nil)
        for checksum in entry.checksums.values { writer.write(checksum) }
        writer.write(text: head.key.url)
        writer.write(text: head.key.partition)
        writer.write(UInt16(truncatingIfNeeded: head.status))
        writer.write(text: head.reason)
        write(head.fields, to: &writer)
        writer.write(optional: head.trailers) { write($0, to: &$1) }
        writer.write(UInt32(truncatingIfNeeded: head.selections.count))
        for selection in head.selections {
            writer.write(text: selection.name)
            writer.write(optional: selection.value)
        }
        writer.write(head.requestTime.milliseconds)
        writer.write(head.responseTime.milliseconds)
        writer.write(head.wasAuthorized)
        let metadataCount = writer.bytes.count - preambleByteCount
        guard metadataCount <= metadataLimit else { return nil }
        writer.overwrite(UInt32(metadataCount), at: 8)
        writer.overwrite(checksum(of: writer.bytes, metadataCount: metadataCount), at: 12)
        if let body = entry.inlineBody { writer.write(raw: body) }
        return writer.bytes
    }

    /// Decodes the bytes of a file.
    package static func decode(_ bytes: [UInt8]) throws(EntryFormatError) -> StoredEntry {
        let metadataCount = try metadataByteCount(bytes)
        let metadataEnd = preambleByteCount + metadataCount
        guard bytes.count >= metadataEnd else { throw .length }
        let expected: UInt32 = try reading(bytes[12..<16]) { (reader) throws(RecordReader.FieldError) in
            try reader.number("checksum")
        }
        guard checksum(of: bytes, metadataCount: metadataCount) == expected else { throw .checksum }
        var entry = try reading(bytes[preambleByteCount..<metadataEnd], metadata)
        let body = Array(bytes[metadataEnd...])
        guard entry.inlineBody != nil else {
            guard body.isEmpty else { throw .length }
            return entry
        }
        guard UInt64(body.count) == entry.bodyByteCount else { throw .length }
        guard BlockChecksums(of: body.span) == entry.checksums else { throw .checksum }
        entry.inlineBody = body
        return entry
    }

    /// Returns the length of the metadata, from the first 16 bytes of a file.
    static func metadataByteCount(_ bytes: [UInt8]) throws(EntryFormatError) -> Int {
        guard bytes.count >= preambleByteCount else { throw .length }
        guard bytes.starts(with: magic) else { throw .foreign }
        let (version, flags, count) = try reading(bytes[4..<preambleByteCount]) {
            (reader) throws(RecordReader.FieldError) -> (UInt16, UInt16, UInt32) in
            (try reader.number("version"), try reader.number("flags"), try reader.number("length"))
        }
        guard version == Self.version else { throw .version(version) }
        guard flags == 0 else { throw .foreign }
        guard count <= metadataLimit else { throw .length }
        return Int(count)
    }

    private static func checksum(of bytes: [UInt8], metadataCount: Int) -> UInt32 {
        var checksum = CastagnoliChecksum()
        checksum.update(bytes.span.extracting(0..<12))
        checksum.update(bytes.span.extracting(preambleByteCount..<(preambleByteCount + metadataCount)))
        return checksum.value
    }

    private static func reading<Value>(
        _ bytes: ArraySlice<UInt8>, _ read: (inout RecordReader) throws(RecordReader.FieldError) -> Value
    ) throws(EntryFormatError) -> Value {
        var reader = RecordReader(bytes)
        do throws(RecordReader.FieldError) { return try read(&reader) } catch { throw .record(error) }
    }

    private static func metadata(_ reader: inout RecordReader) throws(RecordReader.FieldError) -> StoredEntry {
        let generation: UInt64 = try reader.number("generation")
        let bodyByteCount: UInt64 = try reader.number("body length")
        let isInline = try reader.flag("inline")
        guard !isInline || bodyByteCount <= inlineLimit else { throw reader.makeError("body length") }
        let checksumCount = BlockChecksums.count(of: bodyByteCount)
        guard checksumCount <= UInt64(reader.remainingCount / 4) else { throw reader.makeError("body length") }
        var checksums: [UInt32] = []
        checksums.reserveCapacity(Int(checksumCount))
        for _ in 0..<checksumCount { checksums.append(try reader.number("body checksum")) }
        let url = try reader.text(limit: textLimit, "URL")
        let partition = try reader.text(limit: textLimit, "partition")
        let status: UInt16 = try reader.number("status")
        guard (100...999).contains(status) else { throw reader.makeError("status") }
        let reason = try reader.text(limit: textLimit, "reason")
        let fields = try fields(&reader)
        let trailers = try reader.optional("trailers", Self.fields)
        let selectionCount: UInt32 = try reader.number("selections")
        guard selectionCount <= selectionLimit else { throw reader.makeError("selections") }
        var selections: [StoredHead.Selection] = []
        for _ in 0..<selectionCount {
            let name = try reader.text(limit: textLimit, "selection name")
            let value = try reader.optional("selection") { (reader) throws(RecordReader.FieldError) in
                try reader.text(limit: textLimit, "selection value")
            }
            selections.append(StoredHead.Selection(name: name, value: value))
        }
        let requestTime = WallTime(milliseconds: try reader.number("request time"))
        let responseTime = WallTime(milliseconds: try reader.number("response time"))
        let wasAuthorized = try reader.flag("authorized")
        guard reader.remainingCount == 0 else { throw reader.makeError("end") }
        let head = StoredHead(
            key: CacheKey(url: url, partition: partition), status: Int(status), reason: reason, fields: fields,
            trailers: trailers, selections: selections, requestTime: requestTime, responseTime: responseTime,
            wasAuthorized: wasAuthorized)
        return StoredEntry(
            head: head, generation: generation, bodyByteCount: bodyByteCount, inlineBody: isInline ? [] : nil,
            checksums: BlockChecksums(values: checksums))
    }

    private static func fields(_ reader: inout RecordReader) throws(RecordReader.FieldError) -> FieldBlock {
        let count: UInt32 = try reader.number("fields")
        guard count <= fieldLimit else { throw reader.makeError("fields") }
        var fields = FieldBlock()
        for _ in 0..<count {
            let name = try reader.counted(limit: textLimit, "field name")
            guard isName(name) else { throw reader.makeError("field name") }
            let value = try reader.counted(limit: textLimit, "field value")
            guard value.allSatisfy(ByteClass.isFieldValue) else { throw reader.makeError("field value") }
            fields.append(name: name, value: value)
        }
        return fields
    }

    private static func write(_ fields: FieldBlock, to writer: inout RecordWriter) {
        writer.write(UInt32(truncatingIfNeeded: fields.count))
        for index in fields.indices {
            writer.write(counted: fields.name(at: index))
            writer.write(counted: fields.value(at: index))
        }
    }

    private static func isName(_ name: ArraySlice<UInt8>) -> Bool {
        !name.isEmpty && name.allSatisfy(ByteClass.isToken)
    }

    /// Whether a head can be decoded after it was encoded.
    private static func isWithinLimits(_ head: StoredHead) -> Bool {
        guard (100...999).contains(head.status), head.selections.count <= selectionLimit else { return false }
        let texts = [head.key.url, head.key.partition, head.reason] + head.selections.map(\.name)
        let values = head.selections.compactMap(\.value)
        guard (texts + values).allSatisfy({ $0.utf8.count <= textLimit }) else { return false }
        return [head.fields, head.trailers ?? FieldBlock()].allSatisfy { fields in
            fields.count <= fieldLimit
                && fields.indices.allSatisfy { index in
                    let (name, value) = (fields.name(at: index), fields.value(at: index))
                    return isName(name) && name.count <= textLimit && value.count <= textLimit
                        && value.allSatisfy(ByteClass.isFieldValue)
                }
        }
    }
}

/// The content of an entry's file.
package struct StoredEntry: Equatable, Sendable {
    package var head: StoredHead
    /// A random number that identifies the stored body. It is part of the name of a larger body's file.
    package var generation: UInt64
    package var bodyByteCount: UInt64
    /// The body, if it is in the same file; `nil` if it has its own.
    package var inlineBody: [UInt8]?
    var checksums: BlockChecksums
}

/// The number of an entry's body, read from the first bytes of the entry's file. No checksum is verified.
struct EntryIdentity: Equatable, Sendable {
    let generation: UInt64
    /// The generation of a body in its own file; `nil` for an inline body.
    let bodyGeneration: UInt64?

    /// Reads an entry's file; `nil` if it cannot be read or is not an entry.
    static func read(_ directory: CacheDirectory, _ name: EntryName) -> EntryIdentity? {
        let count = EntryCodec.preambleByteCount + 17
        guard let file = try? directory.files.open(directory.path(of: .entry(name)), for: .reading),
            let bytes = try? directory.files.read(file, count: count, at: 0), bytes.count == count,
            (try? EntryCodec.metadataByteCount(bytes)) != nil
        else { return nil }
        var reader = RecordReader(bytes[EntryCodec.preambleByteCount...])
        guard let generation: UInt64 = try? reader.number("generation"),
            let _: UInt64 = try? reader.number("body length"), let isInline = try? reader.flag("inline")
        else { return nil }
        return EntryIdentity(generation: generation, bodyGeneration: isInline ? nil : generation)
    }
}

/// The name of a stored response: the digest of its key, and the number of the variant.
package struct EntryName: Hashable, Sendable {
    /// The maximum number of stored variants of a URL (RFC 9111 §4.1).
    static let slotLimit = 8

    let digest: CacheDigest
    /// The number of the variant, 0..<``slotLimit``.
    let slot: Int

    static func all(of digest: CacheDigest) -> [EntryName] {
        (0..<slotLimit).map { EntryName(digest: digest, slot: $0) }
    }
}

/// The reason why a file is not a valid entry. In each case the response counts as missing.
package enum EntryFormatError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The first bytes are not those of an entry.
    case foreign
    /// The file has another version of the format.
    case version(UInt16)
    /// The file is shorter or longer than its lengths specify.
    case length
    case checksum
    /// A field of the record is invalid.
    case record(RecordReader.FieldError)
    case unreadable(StorageError)

    package var description: String {
        switch self {
        case .foreign: "is not an entry"
        case .version(let number): "was written by another version (\(number))"
        case .length: "is cut short, too long, or without its body"
        case .checksum: "a checksum does not match"
        case .record(let error): "the field “\(error.field)” at byte \(error.offset) cannot be read"
        case .unreadable(let error): "could not be read: \(error)"
        }
    }
}
