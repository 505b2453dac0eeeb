import MartletCache
import MartletStorage
import MartletWire

extension FuzzEntry {
    /// Files of stored cache entries.
    ///
    /// The input is decoded unchanged, which the checksums seldom allow, and again with correct lengths and checksums,
    /// so that its fields are parsed. A decoded entry is encoded to the same bytes.
    static let cacheEntry = FuzzEntry("cache-entry") { (bytes) throws(FuzzFinding) in
        try checkEntry(bytes)
        try checkEntry(mended(bytes))
    }

    private static func checkEntry(_ bytes: [UInt8]) throws(FuzzFinding) {
        let entry: StoredEntry
        do throws(EntryFormatError) {
            entry = try EntryCodec.decode(bytes)
        } catch {
            if case .record(let fault) = error {
                try require(
                    !fault.field.isEmpty && (0...bytes.count).contains(fault.offset),
                    "\(fault) points nowhere")
            }
            return
        }
        let encoded = EntryCodec.encode(entry)
        try require(encoded == bytes, "it is encoded to \(encoded?.count ?? -1) bytes of \(bytes.count)")
        for fields in [entry.head.fields, entry.head.trailers].compactMap(\.self) {
            for field in fields {
                let isLine =
                    !field.name.isEmpty && field.name.utf8.allSatisfy(ByteClass.isToken)
                    && !field.value.utf8.contains {
                        $0 == ByteClass.lineFeed || $0 == ByteClass.carriageReturn
                    }
                try require(isLine, "a field splits a message: \(field.name)")
            }
        }
        // The cache rules accept any head that a file can contain.
        let variant = StoredVariant(head: entry.head, bodyLength: entry.bodyByteCount)
        let request = CacheRequest(method: "GET", key: entry.head.key, fields: FieldBlock())
        let decision = CacheDecision(request, variants: [variant], now: CacheFields.start)
        guard case .serve(let answer) = decision else { return }
        try require(!variant.control.isNoCache, "\(answer) is served despite no-cache")
    }

    /// Returns the bytes with correct lengths and checksums.
    private static func mended(_ bytes: [UInt8]) -> [UInt8] {
        let preamble = EntryCodec.preambleByteCount
        // The fields after the preamble: generation, body length, whether the body is inline, and its checksums.
        guard bytes.count >= preamble + 17 else { return bytes }
        var bytes = bytes
        var bodyCount = 0
        if bytes[preamble + 16] == 1 {
            var length: UInt64 = 0
            for place in 0..<8 { length |= UInt64(bytes[preamble + 8 + place]) << UInt64(8 * place) }
            bodyCount = Int(min(length, UInt64(bytes.count - preamble - 17)))
        }
        let metadataEnd = bytes.count - bodyCount
        put(UInt32(metadataEnd - preamble), at: 8, in: &bytes)
        if bodyCount > 0, metadataEnd >= preamble + 21 {
            put(
                CastagnoliChecksum(bytes.span.extracting(metadataEnd..<bytes.count)).value, at: preamble + 17,
                in: &bytes)
        }
        var checksum = CastagnoliChecksum()
        checksum.update(bytes.span.extracting(0..<12))
        checksum.update(bytes.span.extracting(preamble..<metadataEnd))
        put(checksum.value, at: 12, in: &bytes)
        return bytes
    }

    /// Overwrites four bytes with a number in little-endian order.
    static func put(_ number: UInt32, at offset: Int, in bytes: inout [UInt8]) {
        for place in 0..<4 { bytes[offset + place] = UInt8(truncatingIfNeeded: number >> UInt32(8 * place)) }
    }
}
