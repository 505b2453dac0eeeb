import MartletConditions
import MartletContent
import MartletCore
import MartletHosts
import MartletTesting

extension HostilePeer {
    private static let zeros = [UInt8](repeating: 0, count: 32 << 20)
    private static let hello = Deflated.bytes(Array("hello".utf8), as: .gzip)
    private static let bomb = Deflated.bytes(zeros, as: .gzip)

    /// A peer whose body has valid framing and a content coding.
    private static func coded(
        _ name: String, _ coding: String, _ body: [UInt8], _ fate: HostileOutcome
    ) -> HostilePeer {
        let head =
            "HTTP/1.1 200 OK\r\nContent-Encoding: \(coding)\r\nContent-Length: \(body.count)\r\n\r\n"
        let steps: [ScriptStep] = [
            .expectRequestHead, .send(Array(head.utf8) + body), .expectRequestHead, .send(HostileScene.good),
            .awaitClose,
        ]
        return HostilePeer(name, script: steps, fate)
    }

    /// Returns a list of `count` codings.
    private static func list(_ coding: String, _ count: Int) -> String {
        Array(repeating: coding, count: count).joined(separator: ", ")
    }

    /// Bodies with a broken content coding, or a bomb (RFC 9110 §8.4).
    static let codings: [HostilePeer] = [
        coded("A gzip body", "gzip", hello, .answered("hello", isKept: true)),
        coded("A gzip bomb", "gzip", bomb, .undecodable(.ratioExceeded(limit: 100))),
        coded(
            "A zlib bomb", "deflate", Deflated.bytes(zeros, as: .zlib),
            .undecodable(.ratioExceeded(limit: 100))),
        coded(
            "A raw deflate bomb", "deflate", Deflated.bytes(zeros, as: .raw),
            .undecodable(.ratioExceeded(limit: 100))),
        coded(
            "A bomb within a bomb", "gzip, gzip", Deflated.bytes(bomb, as: .gzip),
            .undecodable(.ratioExceeded(limit: 100))),
        coded("Six codings", list("gzip", 6), hello, .undecodable(.tooManyCodings(limit: 5))),
        coded("Twenty codings", list("gzip", 20), hello, .undecodable(.tooManyCodings(limit: 5))),
        coded(
            "A gzip body short of a byte", "gzip", hello.dropLast(), .undecodable(.truncated(.gzip))),
        coded("Half a gzip header", "gzip", Array(hello.prefix(5)), .undecodable(.truncated(.gzip))),
        coded(
            "A gzip body with another checksum", "gzip",
            hello.dropLast(8) + [1, 2, 3, 4] + hello.suffix(4), .undecodable(.checksumMismatch(.gzip))),
        coded(
            "A gzip body with another length", "gzip", hello.dropLast(4) + [9, 0, 0, 0],
            .undecodable(.lengthMismatch(.gzip))),
        coded(
            "A page that is called gzip", "gzip", Array("<html>EVIL".utf8),
            .undecodable(.invalidHeader(.gzip))),
        coded(
            "Bytes behind a gzip body", "gzip", hello + Array("EVIL".utf8),
            .undecodable(.trailingData(.gzip))),
        coded("Two gzip members", "gzip", hello + hello, .answered("hellohello", isKept: true)),
        coded("No byte of a gzip body", "gzip", [], .answered("", isKept: true)),
    ]
}
