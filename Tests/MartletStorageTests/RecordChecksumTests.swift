import MartletStorage
import Testing

@Suite("CRC-32")
struct RecordChecksumTests {
    private func checksum(_ bytes: [UInt8]) -> UInt32 { RecordChecksum(bytes.span).value }

    @Test(
        "The checksums match those of gzip and PNG",
        arguments: [
            ("", 0), ("a", 0xE8B7_BE43), ("123456789", 0xCBF4_3926),
            ("The quick brown fox jumps over the lazy dog", 0x414F_A339),
        ] as [(String, UInt32)])
    func known(_ text: String, _ expected: UInt32) {
        #expect(checksum(Array(text.utf8)) == expected)
    }

    @Test("The checksum does not depend on how the bytes are split")
    func pieces() {
        let bytes = (0..<100).map { UInt8($0 * 7 & 0xFF) }
        for split in 0...bytes.count {
            var checksum = RecordChecksum()
            checksum.update(bytes.span.extracting(0..<split))
            checksum.update(bytes.span.extracting(split..<bytes.count))
            #expect(checksum.value == self.checksum(bytes))
        }
    }

    @Test("Any flipped bit changes the checksum")
    func flips() {
        let bytes = [UInt8](repeating: 0x5A, count: 67)
        let expected = checksum(bytes)
        for bit in 0..<(bytes.count * 8) {
            var damaged = bytes
            damaged[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(checksum(damaged) != expected)
        }
    }
}
