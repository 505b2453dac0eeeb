import MartletTransport
import Testing

@Suite("Digests")
struct MessageDigestTests {
    private func hex(_ algorithm: MessageDigestAlgorithm, _ text: String) throws -> String {
        String(
            decoding: MessageDigest.hexadecimal(try MessageDigest.digest(algorithm, of: text.utf8)),
            as: UTF8.self)
    }

    @Test(
        "The published digests of the empty string, “abc” and a longer text are computed",
        arguments: [
            (MessageDigestAlgorithm.md5, "", "d41d8cd98f00b204e9800998ecf8427e"),
            (.md5, "abc", "900150983cd24fb0d6963f7d28e17f72"),
            (.md5, "message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
            (
                .md5, "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
                "57edf4a22be3c955ac49da2e2107b67a"
            ),
            (.sha1, "abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
            (.sha256, "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            (.sha256, "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                .sha256, "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
            ),
            (
                .sha384, "abc",
                "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7"
            ),
            (
                .sha512, "abc",
                "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
                    + "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
            ),
            (.sha512_256, "", "c672b8d1ef56ed28ab87c3622c5114069bdd3ad7b8f9737498d0c01ecef0967a"),
            (.sha512_256, "abc", "53048e2681941ef99b2e29b76b4c7dabe4c2d0c634fc6d46e0e2f13107e7af23"),
        ])
    func vectors(_ algorithm: MessageDigestAlgorithm, _ text: String, _ expected: String) throws {
        #expect(try hex(algorithm, text) == expected)
        #expect(expected.utf8.count == 2 * algorithm.byteCount)
    }

    @Test(
        "A digest that is computed in pieces equals the digest of the whole",
        arguments: MessageDigestAlgorithm.allCases)
    func pieces(_ algorithm: MessageDigestAlgorithm) throws {
        let bytes = (0..<1000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let digest = try MessageDigest(algorithm)
        digest.update([])
        digest.update(bytes[..<1])
        digest.update(bytes[1..<64])
        digest.update(bytes[64..<700].lazy.map(\.self))
        let rest = Array(bytes[700...])
        digest.update(rest.span)
        #expect(try digest.finish() == MessageDigest.digest(algorithm, of: bytes))
    }

    @Test("Using a finished digest again is an error")
    func finishedOnce() throws {
        let digest = try MessageDigest(.sha256)
        _ = try digest.finish()
        digest.update([1])
        #expect(throws: MessageDigestError.self) { try digest.finish() }
    }

    @Test("SHA-512/256 is not a truncated SHA-512")
    func notTruncated() throws {
        #expect(
            try MessageDigest.digest(.sha512_256, of: [])
                != Array(MessageDigest.digest(.sha512, of: []).prefix(32)))
    }

    @Test("Each algorithm is available on a system that forbids none", arguments: MessageDigestAlgorithm.allCases)
    func available(_ algorithm: MessageDigestAlgorithm) {
        #expect(algorithm.isAvailable)
    }
}
