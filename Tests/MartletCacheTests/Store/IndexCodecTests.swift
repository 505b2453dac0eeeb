import Testing

@testable import MartletCache

@Suite("Format of the index")
struct IndexCodecTests {
    private let records = (1...5).map { number in
        IndexRecord(
            name: EntryName(digest: CacheDigest(high: UInt64(number), low: 9), slot: number),
            tick: UInt64(number) * 3, isMarked: number % 2 == 0)
    }

    @Test("All records are read back in their order")
    func roundTrip() {
        #expect(IndexCodec.decode(IndexCodec.encode(records)) == records)
        #expect(IndexCodec.decode(IndexCodec.encode([])) == [])
    }

    @Test("A truncated index retains the records before the cut")
    func cuts() {
        let bytes = IndexCodec.encode(records)
        for count in 0..<bytes.count {
            let decoded = IndexCodec.decode(Array(bytes[..<count]))
            #expect(decoded == (count < 12 ? nil : Array(records.prefix((count - 12) / 32))))
        }
    }

    @Test("A flipped bit loses one record, or all records if it is in the header")
    func flips() {
        let bytes = IndexCodec.encode(records)
        for bit in 0..<(bytes.count * 8) {
            var damaged = bytes
            damaged[bit / 8] ^= 1 << UInt8(bit % 8)
            var expected: [IndexRecord]? = records
            if bit < 96 { expected = nil } else { expected?.remove(at: (bit / 8 - 12) / 32) }
            #expect(IndexCodec.decode(damaged) == expected, "bit \(bit)")
        }
    }
}
