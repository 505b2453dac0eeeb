import Martlet
import MartletDownloads
import MartletTesting
import MartletTestSupport
import Testing

@Suite("Repr-Digest field")
struct ReprDigestTests {
    /// The examples of RFC 9530 (§3, appendix B.1), for the bytes `{"hello": "world"}` and LF.
    private static let sha256 = "RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg="
    private static let sha512 =
        "YMAam51Jz/jOATT6/zvHrLVgOYTGFy1d6GJiOHTohq4yP+pgk4vf2aCs"
        + "yRZOtw8MjkM7iw7yZ/WkppmM44T3qg=="

    @Test("SHA-256 and SHA-512 are read, the stronger first")
    func examples() {
        let found = ReprDigest.checksums([
            "sha-256=:\(ReprDigestTests.sha256):, sha-512=:\(ReprDigestTests.sha512):"
        ])
        #expect(found.map(\.algorithm) == [.sha512, .sha256])
        #expect(
            found.last?.hexadecimal == "44aff4ab2d7c3250525675a08f0cfa9591168cffe51791c5f5bbc417c15a6c38")
        #expect(found.first?.bytes.count == 64)
    }

    @Test("Members of several fields are combined, and the last duplicate wins")
    func several() {
        let zeros = String(repeating: "A", count: 43) + "="
        let found = ReprDigest.checksums([
            "sha-256=:\(zeros):", "sha-512=:\(ReprDigestTests.sha512):",
            "  sha-256=:\(ReprDigestTests.sha256):;q=1\t",
        ])
        #expect(found.count == 2)
        #expect(found.last?.bytes.first == 0x44)
    }

    @Test(
        "Members that are malformed or of another algorithm are ignored",
        arguments: [
            "", ",", "=", "sha-256", "sha-256=", "sha-256=:", "sha-256=::", "sha-256=:AAAA:",
            "sha-256=\(sha256)", "sha-256=:\(sha256)", "sha-256=\"\(sha256)\"", "SHA-256=:\(sha256):",
            "sha=:\(sha256):", "md5=:1B2M2Y8AsgTpgAmY7PhCfg==:", "unixsum=:AAA=:",
            "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg:",
            "sha-256=:RK_0qy18MlBSVnWgjwz6lZEWjP_lF5HF9bvEF8FabDg=:",
            "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8Fab=g=:",
            "sha-256=:====:", "sha-256=:A===:", "sha-512=:\(sha256):", "sha-256=:\u{E9}\u{E9}\u{E9}\u{E9}:",
        ])
    func passedOver(_ value: String) {
        #expect(ReprDigest.checksums([value]).isEmpty)
    }

    @Test("A malformed member does not prevent others from being read")
    func neighbours() {
        let found = ReprDigest.checksums(["sha-512=:no:, x, sha-256=:\(ReprDigestTests.sha256):, ,=,"])
        #expect(found.map(\.algorithm) == [.sha256])
    }

    @Test(
        "A megabyte of any input takes linear time",
        arguments: [",", " ", "=", ":", "sha-256=:", "sha-256=:A:,", "\t,"])
    func linear(_ piece: String) async {
        let growth = await ComplexityProbe.measure((1 << 17, 1 << 20)) { byteCount in
            let value = String(repeating: piece, count: byteCount / piece.utf8.count)
            return { #expect(ReprDigest.checksums([value]).isEmpty) }
        }
        #expect(growth.isLinear, "\(growth)")
        let value = String(repeating: piece, count: (1 << 17) / piece.utf8.count)
        #expect(ReprDigest.checksums([value, "sha-256=:\(ReprDigestTests.sha256):"]).count == 1)
    }
}
