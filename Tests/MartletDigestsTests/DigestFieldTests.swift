import MartletContent
import MartletTestSupport
import Testing

@Suite("Digest fields: syntax")
struct DigestFieldTests {
    /// The examples of RFC 9530 (§3, appendix B.1), for the bytes `{"hello": "world"}` and LF.
    private static let sha256 = "RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg="
    private static let sha512 =
        "YMAam51Jz/jOATT6/zvHrLVgOYTGFy1d6GJiOHTohq4yP+pgk4vf2aCs"
        + "yRZOtw8MjkM7iw7yZ/WkppmM44T3qg=="
    private static let zeros = String(repeating: "A", count: 43) + "="

    private static func digests(_ lines: [String]) -> [DigestAlgorithm: [UInt8]] {
        DigestField(lines.map { Array($0.utf8)[...] }).digests
    }

    @Test(
        "A dictionary is read in every form of its syntax",
        arguments: [
            ["sha-256=:\(sha256):"], ["  sha-256=:\(sha256):  "], ["sha-256=:\(sha256):\t"],
            ["sha-256=:\(sha256.dropLast()):"],
            ["sha-256=:\(sha256):;a;b=1;c=\"x\""], ["sha-256=:\(sha256):; a=?0"], ["a,sha-256=:\(sha256):"],
            ["sha-256=:\(zeros):", "sha-256=:\(sha256):"], ["sha-256=1, \t sha-256=:\(sha256):"],
            ["sha-256=:\(sha256):", "md5=:1B2M2Y8AsgTpgAmY7PhCfg==:"], ["unixsum=:AAA=:,sha-256=:\(sha256):"],
            [
                "a=1, b=-2.5, c=\"q\\\"\\\\\", d=tok/en:*, e=?1, f=@-3, g=%\"%c3%a9\", h=(1 \"a\";x b);y, sha-256=:\(sha256):"
            ],
            ["a=(), *b_-.*=::, sha-256=:\(sha256):"], ["a=999999999999999, b=999999999999.999, sha-256=:\(sha256):"],
        ])
    func accepted(_ lines: [String]) {
        let found = Self.digests(lines)
        #expect(found.count == 1)
        #expect(found[.sha256]?.prefix(4) == [0x44, 0xAF, 0xF4, 0xAB])
    }

    @Test("Both functions are read from several lines, and written in the same form")
    func both() throws {
        let found = Self.digests(["sha-256=:\(Self.sha256):", "sha-512=:\(Self.sha512):"])
        #expect(found[.sha256]?.count == 32 && found[.sha512]?.count == 64)
        #expect(DigestField.member(.sha256, try #require(found[.sha256])) == "sha-256=:\(Self.sha256):")
        #expect(DigestField.member(.sha512, try #require(found[.sha512])) == "sha-512=:\(Self.sha512):")
    }

    @Test(
        "A field without a usable digest has none",
        arguments: [
            "", " ", "sha-256", "sha-256=::", "sha-256=:AAAA:", "sha-256=(:\(sha256):)", "sha-256=\"\(sha256)\"",
            "sha-256=:\(sha256):, sha-256", "sha-256=:\(sha256):, sha-256=1", "sha-512=:\(sha256):",
            "sha-256-x=:\(sha256):",
            "sha=:\(sha256):", "md5=:1B2M2Y8AsgTpgAmY7PhCfg==:", "unixsum=:AAA=:",
        ])
    func unusable(_ value: String) { #expect(Self.digests([value]).isEmpty) }

    @Test(
        "A syntax error makes the whole field invalid",
        arguments: [
            ",", "=", "sha-256=", "sha-256=:", "sha-256=:\(sha256)", "sha-256=\(sha256)", "SHA-256=:\(sha256):",
            "sha-256=:RK_0qy18MlBSVnWgjwz6lZEWjP_lF5HF9bvEF8FabDg=:",
            "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8Fab=g=:",
            "a=:====:", "a=:A===:", "a=:A:", "a=:AA=:", "a=:AAAA=:", "a=:\u{E9}\u{E9}:", "a=: AAAA:", "a=1.", "a=.5",
            "a=1.2345", "a=1234567890123.1", "a=1234567890123456", "a=-", "a=--1", "a=?2", "a=?", "a=\"x", "a=\"\\x\"",
            "a=\"\u{7F}\"",
            "a=@1.5", "a=@", "a=%x", "a=%\"%C3%A9\"", "a=%\"%c3\"", "a=%\"%", "a=(1", "a=(1,2)", "a=(1\"b\")",
            "a=((1))", "a=1;", "a=1;=2",
            "a=1;b=", "a=1 b", "a b", "a =1", "a= 1", "-a=1", "1=1", "a,", "a,,b", ", a", "a=\u{0}",
        ])
    func invalid(_ value: String) {
        #expect(Self.digests([value]).isEmpty)
        #expect(Self.digests(["sha-256=:\(Self.sha256):", value]).isEmpty)
        #expect(Self.digests([value, "sha-256=:\(Self.sha256):"]).isEmpty)
    }

    @Test("A tab may follow a comma, but not precede the field")
    func tabs() {
        #expect(Self.digests(["a,\tsha-256=:\(Self.sha256):"]).count == 1)
        #expect(Self.digests(["\tsha-256=:\(Self.sha256):"]).isEmpty)
    }

    @Test("Every prefix of a field and each changed byte gives the digest, another one, or none")
    func damaged() {
        let field = Array("sha-256=:\(Self.sha256):;q=\"1\", a=(1 2.5);b".utf8)
        for end in field.indices { _ = DigestField([field[..<end]]) }
        for index in field.indices {
            for byte in UInt8.min...UInt8.max {
                var changed = field
                changed[index] = byte
                for (algorithm, bytes) in DigestField([changed[...]]).digests {
                    #expect(bytes.count == algorithm.byteCount)
                }
            }
        }
    }

    @Test(
        "A megabyte of any input takes linear time",
        arguments: [
            ",", " ", "=", ":", "sha-256=:", "sha-256=:A:,", "\t,", "a,", "a=1;", ";a", "(", "a=(", "%\"",
            "sha-256=:\(zeros):,",
        ])
    func linear(_ piece: String) async {
        let growth = await ComplexityProbe.measure((1 << 17, 1 << 20)) { byteCount in
            let bytes = Array(String(repeating: piece, count: byteCount / piece.utf8.count).utf8)
            return { #expect(DigestField([bytes[...]]).digests.isEmpty) }
        }
        #expect(growth.isLinear, "\(growth)")
    }

    @Test("Thousands of members are read, and the last of each name counts")
    func many() {
        let members =
            (0..<10_000).map { "a\($0)=:\(Self.zeros):, sha-256=:\(Self.zeros):" } + ["sha-256=:\(Self.sha256):"]
        #expect(Self.digests(members)[.sha256]?.first == 0x44)
    }
}
