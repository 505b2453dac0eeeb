import MartletStorage
import Testing

@Suite("CRC-32C")
struct CastagnoliChecksumTests {
    private func checksum(_ bytes: [UInt8]) -> UInt32 { CastagnoliChecksum(bytes.span).value }

    private func byTables(_ bytes: [UInt8]) -> UInt32 {
        var checksum = CastagnoliChecksum()
        checksum.updateByTables(bytes.span)
        return checksum.value
    }

    @Test(
        "The checksums match RFC 3720",
        arguments: [
            ([], 0), (Array("123456789".utf8), 0xE306_9283),
            ([UInt8](repeating: 0, count: 32), 0x8A91_36AA),
            ([UInt8](repeating: 0xFF, count: 32), 0x62A8_AB43),
            (Array(0..<32), 0x46DD_794E), (Array((0..<32).reversed()), 0x113F_DB5C),
        ] as [([UInt8], UInt32)])
    func known(_ bytes: [UInt8], _ expected: UInt32) {
        #expect(checksum(bytes) == expected)
        #expect(byTables(bytes) == expected)
    }

    @Test("The checksums with and without the processor's instruction are equal for every length")
    func ways() {
        let bytes = (0..<140_000).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 11) }
        for count in Array(0..<70) + [
            4095, 4096, 4097, 8191, 16_384, 65_535, 65_536, 65_537, 70_001, 140_000,
        ] {
            let part = Array(bytes.prefix(count))
            #expect(checksum(part) == byTables(part), "\(count) bytes")
        }
    }

    @Test("The checksum does not depend on how the bytes are split")
    func pieces() {
        let bytes = (0..<9000).map { UInt8($0 * 7 & 0xFF) }
        for split in [0, 1, 7, 8, 9, 4095, 4096, 4100, 8999, 9000] {
            var checksum = CastagnoliChecksum()
            checksum.update(bytes.span.extracting(0..<split))
            checksum.update(bytes.span.extracting(split..<bytes.count))
            #expect(checksum.value == self.checksum(bytes))
        }
    }

    @Test("Any flipped bit changes the checksum")
    func flips() {
        let bytes = [UInt8](repeating: 0x5A, count: 4200)
        let expected = checksum(bytes)
        for bit in stride(from: 0, to: bytes.count * 8, by: 5) {
            var damaged = bytes
            damaged[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(checksum(damaged) != expected)
        }
    }
}
