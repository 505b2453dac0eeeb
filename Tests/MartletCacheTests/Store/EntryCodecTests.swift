import MartletCacheChild
import MartletStorage
import MartletWire
import Testing

@testable import MartletCache

@Suite("Format of a stored entry")
struct EntryCodecTests {
    private func entry(body: [UInt8] = Array("hello".utf8)) -> StoredEntry {
        let head = StoredHead(
            key: CacheKey(url: "https://example.com/ä?q=1", partition: "abc"), status: 404, reason: "Nö",
            fields: FieldBlock([("ETag", "\"1\""), ("X-Empty", ""), ("Vary", "accept, x-none")]),
            trailers: FieldBlock([("Digest", "x")]),
            selections: [.init(name: "accept", value: "text/html"), .init(name: "x-none", value: nil)],
            requestTime: WallTime(milliseconds: -5), responseTime: WallTime(milliseconds: .max),
            wasAuthorized: true)
        var checksums = BlockChecksums()
        checksums.update(body.span)
        checksums.finish()
        return StoredEntry(
            head: head, generation: 7, bodyByteCount: UInt64(body.count), inlineBody: body,
            checksums: checksums)
    }

    @Test("An entry is read back completely")
    func roundTrip() throws {
        let bytes = try #require(EntryCodec.encode(entry()))
        #expect(try EntryCodec.decode(bytes) == entry())
        var plain = entry(body: [])
        plain.head.trailers = nil
        plain.head.selections = []
        #expect(try EntryCodec.decode(#require(EntryCodec.encode(plain))) == plain)
        var large = entry()
        large.inlineBody = nil
        large.bodyByteCount = 200_000
        large.checksums = BlockChecksums(values: [1, 2, 3, 4])
        #expect(try EntryCodec.decode(#require(EntryCodec.encode(large))) == large)
    }

    @Test("A flipped bit at any position makes the entry invalid")
    func flips() throws {
        let bytes = try #require(EntryCodec.encode(entry()))
        for bit in 0..<(bytes.count * 8) {
            var damaged = bytes
            damaged[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(throws: EntryFormatError.self, "bit \(bit)") { try EntryCodec.decode(damaged) }
        }
    }

    @Test("An entry that is truncated or has trailing bytes is invalid")
    func cuts() throws {
        let bytes = try #require(EntryCodec.encode(entry()))
        for count in 0..<bytes.count {
            #expect(throws: EntryFormatError.self, "\(count) bytes") {
                try EntryCodec.decode(Array(bytes[..<count]))
            }
        }
        #expect(throws: EntryFormatError.length) { try EntryCodec.decode(bytes + [0]) }
    }

    @Test("An entry of another version reports its version")
    func versions() throws {
        var bytes = try #require(EntryCodec.encode(entry()))
        bytes[4] = 1
        #expect(throws: EntryFormatError.version(1)) { try EntryCodec.decode(bytes) }
        #expect(throws: EntryFormatError.foreign) {
            try EntryCodec.decode(Array("GIF89a-this-is-no-entry".utf8))
        }
    }

    @Test("A metadata length of 4 GB allocates nothing, with or without a matching checksum")
    func hugeLength() throws {
        var bytes = try #require(EntryCodec.encode(entry()))
        for offset in 8..<12 { bytes[offset] = 0xFF }
        #expect(throws: EntryFormatError.length) { try EntryCodec.decode(bytes) }
    }

    @Test("A head that could not be read back is not written")
    func limits() {
        var wide = entry()
        wide.head.fields = FieldBlock([("X", String(repeating: "a", count: 1_048_577))])
        #expect(EntryCodec.encode(wide) == nil)
        var split = entry()
        split.head.fields = FieldBlock([("X", "a\r\nSet-Cookie: b")])
        #expect(EntryCodec.encode(split) == nil)
        var status = entry()
        status.head.status = 70_000
        #expect(EntryCodec.encode(status) == nil)
    }

    @Test("Block checksums do not depend on how the body was split")
    func blocks() {
        let body = SampleResponse.body(seed: 3, count: 150_000)
        var whole = BlockChecksums()
        whole.update(body.span)
        whole.finish()
        #expect(whole.values.count == 3)
        var pieces = BlockChecksums()
        for start in stride(from: 0, to: body.count, by: 40_001) {
            pieces.update(body.span.extracting(start..<min(body.count, start + 40_001)))
        }
        pieces.finish()
        #expect(pieces == whole)
    }

    @Test("File names are digests, whatever the key contains")
    func names() {
        for url in ["", "../../etc/passwd", "a\0b", String(repeating: "x", count: 1_000_000)] {
            let name = CacheFile.entry(EntryName(digest: CacheDigest(CacheKey(url: url)), slot: 3)).name
            #expect(name.utf8.count == 34)
            #expect(name.utf8.allSatisfy { $0 == UInt8(ascii: ".") || ByteClass.hexDigit($0) != nil })
        }
        #expect(
            CacheDigest(CacheKey(url: "ab", partition: "c"))
                != CacheDigest(CacheKey(url: "a", partition: "bc")))
    }

    @Test("A file with a foreign name is not the cache's")
    func foreignNames() {
        let digest = String(repeating: "0a", count: 16)
        let files: [CacheFile] = [
            .entry(EntryName(digest: CacheDigest(high: 1, low: .max), slot: 7)),
            .body(EntryName(digest: CacheDigest(high: 0, low: 2), slot: 0), generation: 9), .temporary(4),
            .index,
            .lock,
        ]
        for file in files { #expect(CacheFile(name: file.name) == file) }
        for name in [
            "", ".", "..", "notes.txt", digest, "\(digest).8", "\(digest).-1", "\(digest).0.1",
            "\(digest).0.",
            digest.uppercased() + ".0", "new.1", "index.bak", "\(digest).0.\(digest)", "\(digest).0x",
        ] {
            #expect(CacheFile(name: name) == nil, "\(name)")
        }
    }
}
