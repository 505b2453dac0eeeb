import Martlet
import Testing

@Suite("Checksums of files")
struct ChecksumTests {
    @Test("A checksum accepts digits of either case and prints them in lower case")
    func digits() throws {
        let checksum = Checksum.md5("D41D8CD98F00B204e9800998ecf8427e")
        #expect(checksum.bytes.count == 16)
        #expect(checksum.description == "md5=d41d8cd98f00b204e9800998ecf8427e")
    }

    @Test(
        "Digits that are invalid, too few or too many are rejected",
        arguments: ["", "d4", "zz1d8cd98f00b204e9800998ecf8427e", "d41d8cd98f00b204e9800998ecf8427e00", "é"])
    func rejected(_ text: String) {
        #expect { try Checksum(.md5, hexadecimal: text) } throws: { ($0 as? HTTPError)?.code == .invalidRequest }
    }

    @Test("A wrong number of bytes for the function is not a checksum")
    func lengths() {
        #expect(Checksum(.sha1, [1, 2, 3]) == nil)
        #expect(Checksum(.sha256, Array(repeating: 7, count: 32))?.algorithm == .sha256)
    }
}
