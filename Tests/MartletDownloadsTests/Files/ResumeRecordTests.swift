import Martlet
@testable import MartletDownloads
import MartletStorage
import MartletTesting
import MartletTestSupport
import MartletWire
import Testing

@Suite("Resume record of a download")
struct ResumeRecordTests {
    private func random(_ random: inout SeededGenerator) -> ResumeRecord {
        func text(_ random: inout SeededGenerator) -> String {
            String(
                (0..<Int.random(in: 0...40, using: &random)).map { _ in
                    "aZ 0/?é日\u{1F600}".randomElement(using: &random) ?? "a"
                })
        }
        var representation = Representation()
        representation.lastModified = Bool.random(using: &random) ? text(&random) : nil
        representation.isLastModifiedStrong = Bool.random(using: &random)
        representation.coding = Bool.random(using: &random) ? "gzip" : nil
        if Bool.random(using: &random) {
            let bytes = (0..<8).map { _ in UInt8.random(in: 0x23...0x7E, using: &random) }
            representation.entityTag = EntityTag(
                ((Bool.random(using: &random) ? [] : [0x57, 0x2F]) + [0x22] + bytes + [0x22])[...])
        }
        var written = RangeSet<UInt64>()
        for _ in 0..<Int.random(in: 0...20, using: &random) {
            let from = UInt64.random(in: 0..<UInt64.max / 2, using: &random)
            written.insert(contentsOf: from..<from + UInt64.random(in: 1...1_000_000, using: &random))
        }
        var digests: [Checksum] = []
        if Bool.random(using: &random) {
            digests = [Checksum(.sha256, (0..<32).map { _ in UInt8.random(in: 0...255, using: &random) })]
                .compactMap(\.self)
        }
        return ResumeRecord(
            url: "https://example.com/" + text(&random), representation: representation,
            total: Bool.random(using: &random) ? nil : .max, written: written,
            isUnproven: Bool.random(using: &random), generation: UInt32.random(in: 0...9, using: &random),
            digests: digests,
            modified: Bool.random(using: &random) ? nil : Int64.random(in: .min ... .max, using: &random),
            owner: random.next())
    }

    private var sample: ResumeRecord {
        ResumeRecord(
            url: "https://example.com/a", representation: Representation.sample(("ETag", "\"a\"")),
            total: 1_000, written: RangeSet([0..<10, 20..<30]), isUnproven: false, generation: 2,
            digests: [], modified: 5, owner: 7)
    }

    /// The bytes with a corrected length and checksum.
    private func mended(_ bytes: [UInt8]) -> [UInt8] {
        var bytes = bytes
        func put(_ number: UInt32, at offset: Int) {
            for place in 0..<4 {
                bytes[offset + place] = UInt8(truncatingIfNeeded: number >> UInt32(8 * place))
            }
        }
        put(UInt32(bytes.count - 16), at: 8)
        var checksum = RecordChecksum()
        checksum.update(Array(bytes.prefix(12)).span)
        checksum.update(Array(bytes.dropFirst(16)).span)
        put(checksum.value, at: 12)
        return bytes
    }

    private func fault(_ bytes: [UInt8]) -> String? {
        do throws(RecordEnvelope.FormatError) {
            _ = try ResumeRecord.decode(bytes)
            return nil
        } catch {
            if case .field(let field, _) = error { return field }
            return "\(error)"
        }
    }

    @Test("Any record is read as it was written")
    func roundTrip() throws {
        var generator = SeededGenerator(seed: 7)
        for _ in 0..<300 {
            let record = random(&generator)
            let bytes = record.bytes
            #expect(try ResumeRecord.decode(bytes) == record)
            #expect(mended(bytes) == bytes)
        }
    }

    @Test("A record that is cut at any length is ignored")
    func truncated() {
        let bytes = sample.bytes
        for count in 0..<bytes.count { #expect(fault(Array(bytes[..<count])) != nil, "\(count)") }
        #expect(fault(bytes + [0]) == "\(RecordEnvelope.FormatError.length)")
    }

    @Test("A record with any byte changed is ignored")
    func flipped() {
        let bytes = sample.bytes
        for place in bytes.indices {
            for flip: UInt8 in [1, 0x80, 0xFF] {
                var damaged = bytes
                damaged[place] ^= flip
                #expect(fault(damaged) != nil, "\(place)")
            }
        }
    }

    @Test("A record with a valid checksum and any content is read or rejected without a crash")
    func flippedAndMended() {
        let bytes = sample.bytes
        var readable = 0
        for place in 16..<bytes.count {
            for flip: UInt8 in [1, 2, 0x40, 0x80, 0xFF] {
                var damaged = bytes
                damaged[place] ^= flip
                if fault(mended(damaged)) == nil { readable += 1 }
            }
        }
        for count in 16..<bytes.count { #expect(fault(mended(Array(bytes[..<count]))) != nil) }
        #expect(readable > 0)
    }

    @Test("A record of another kind or of a later version is ignored")
    func foreign() {
        var bytes = sample.bytes
        bytes[0] = 0x4E
        #expect(fault(mended(bytes)) == "\(RecordEnvelope.FormatError.foreign)")
        bytes = sample.bytes
        bytes[4] = 3
        #expect(fault(mended(bytes)) == "\(RecordEnvelope.FormatError.version(3))")
        bytes = sample.bytes
        bytes[6] = 1
        #expect(fault(mended(bytes)) == "\(RecordEnvelope.FormatError.foreign)")
        #expect(fault([]) == "\(RecordEnvelope.FormatError.length)")
    }

    static let wrongRanges: [[(UInt64, UInt64)]] = [
        [(20, 30), (0, 10)], [(0, 10), (10, 20)], [(0, 10), (5, 20)], [(5, 5), (20, 30)],
        [(10, 5), (20, 30)],
        [(0, 10), (20, 1_001)], [(0, 10), (0, 10)], [(0, .max), (20, 30)],
    ]

    @Test(
        "Ranges that are empty, out of order, touching, overlapping or beyond the end are rejected",
        arguments: wrongRanges)
    func ranges(_ ranges: [(UInt64, UInt64)]) {
        var bytes = sample.bytes
        var offset = bytes.count - 32
        for (from, to) in ranges {
            for number in [from, to] {
                for place in 0..<8 {
                    bytes[offset + place] = UInt8(truncatingIfNeeded: number >> UInt64(8 * place))
                }
                offset += 8
            }
        }
        #expect(fault(mended(bytes)) == "range")
    }

    @Test("A record stores the first ranges that fit, and stays below its limit")
    func manyRanges() throws {
        var record = sample
        record.total = nil
        record.written = RangeSet((0..<33_000).map { UInt64($0) * 10..<UInt64($0) * 10 + 5 })
        let bytes = record.bytes
        #expect(bytes.count < ResumeRecord.byteLimit)
        let read = try ResumeRecord.decode(bytes)
        #expect(read.written.ranges.count == 32_768)
        #expect(read.written.isSubset(of: record.written))
    }
}
