import MartletContent
import MartletCore
import MartletDiagnostics
import MartletTesting

extension HostilePeer {
    private static let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    private static let gzip = Array("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n".utf8)
    private static let deflate = Array("HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\n\r\n".utf8)
    private static let chunkedGzip = Array(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n\r\n".utf8)
    private static let small = HostileRequest(bodyLimit: .bytes(65_536))

    /// Peers that never stop sending. The error occurs at the limit, and the client reads little more than the limit.
    static let floods: [HostilePeer] = [
        .flood(
            "An endless status line", "HTTP/1.1 200 ", endlessly: "a", taking: 65_536,
            .rejected(.lineTooLong(limit: 65_536))),
        .flood(
            "An endless field value", "HTTP/1.1 200 OK\r\nA: ", endlessly: "a", taking: 65_536,
            .rejected(.lineTooLong(limit: 65_536))),
        .flood(
            "An endless field name", "HTTP/1.1 200 OK\r\n", endlessly: "a", taking: 65_536,
            .rejected(.lineTooLong(limit: 65_536))),
        .flood(
            "Endless blanks before a value", "HTTP/1.1 200 OK\r\nA:", endlessly: " ", taking: 65_536,
            .rejected(.lineTooLong(limit: 65_536))),
        .flood(
            "Endless small fields", "HTTP/1.1 200 OK\r\n", endlessly: "A:\r\n", taking: 4096,
            .rejected(.tooManyLines(limit: 1000))),
        .flood(
            "Endless large fields", "HTTP/1.1 200 OK\r\n",
            endlessly: "A: " + String(repeating: "b", count: 8000) + "\r\n", taking: 262_144,
            .rejected(.headTooLarge(limit: 262_144))),
        .flood(
            "Endless empty lines before a status line", "", endlessly: "\r\n", taking: 4096,
            .rejected(.tooManyLines(limit: 1000))),
        .flood(
            "Endless folded lines", "HTTP/1.1 200 OK\r\nA: b\r\n", endlessly: " c\r\n", taking: 8192,
            .rejected(.tooManyLines(limit: 1000))),
        .flood(
            "Endless early hints", "", endlessly: "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n",
            taking: 4096, .rejected(.tooManyInformationalResponses(limit: 10))),
        .flood(
            "Endless 100s", "", endlessly: "HTTP/1.1 100 Continue\r\n\r\n", taking: 4096,
            .rejected(.tooManyInformationalResponses(limit: 10))),
        .flood(
            "Endless chunks of a byte with extensions of 16,000", chunked,
            endlessly: "1;" + String(repeating: "x", count: 16_000) + "\r\na\r\n", taking: 65_536,
            .rejected(.chunkExtensionsTooLarge(limit: 16_384))),
        .flood(
            "Endless chunks of a byte with extensions of ten", chunked, endlessly: "1;xxxxxxxxxx\r\na\r\n",
            taking: 65_536, .rejected(.chunkExtensionsTooLarge(limit: 16_384))),
        .flood(
            "One endless chunk extension", chunked + "1;", endlessly: "x", taking: 16_384,
            .rejected(.chunkExtensionsTooLarge(limit: 16_384), at: 16_432)),
        .flood(
            "Endless blanks behind a chunk's size", chunked + "1", endlessly: " ", taking: 16_384,
            .rejected(.chunkExtensionsTooLarge(limit: 16_384))),
        .flood(
            "Endless zeros of a chunk's size", chunked, endlessly: "0", taking: 64,
            .rejected(.chunkSizeTooLong(limit: 16), at: 63)),
        .flood(
            "Endless trailers", chunked + "0\r\n", endlessly: "A: bbbbbbbbbbbbbbbbbbbbbbbbbbbb\r\n",
            taking: 16_384, .rejected(.trailersTooLarge(limit: 16_384))),
        .flood(
            "Endless small trailers", chunked + "0\r\n", endlessly: "A:\r\n", taking: 16_384,
            .rejected(.tooManyLines(limit: 1000))),
        .flood(
            "One endless trailer", chunked + "0\r\nA: ", endlessly: "b", taking: 16_384,
            .rejected(.trailersTooLarge(limit: 16_384))),
        .flood(
            "Endless empty chunks", chunked, endlessly: "0\r\n\r\n", taking: 5, .answered("", isKept: false)),
        .flood(
            "A body without end that is collected", "HTTP/1.1 200 OK\r\n\r\n", endlessly: "EVIL",
            taking: 65_536, request: small, .tooLarge),
        .flood(
            "Chunks without end that are collected", chunked, endlessly: "4\r\nEVIL\r\n", taking: 3 << 20,
            request: small, .tooLarge),
        .flood(
            "A body announced as 10^11 bytes", "HTTP/1.1 200 OK\r\nContent-Length: 100000000000\r\n\r\n",
            endlessly: "EVIL", taking: 0, request: small, .tooLarge),
        .flood(
            "A body announced as 2^63 - 1 bytes",
            "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\n", endlessly: "EVIL", taking: 0,
            request: small, .tooLarge),
        .endless("Endless gzip members of no bytes", gzip, Deflated.bytes([], as: .gzip)),
        .endless(
            "Endless zeros behind a gzip body", gzip + Deflated.bytes([], as: .gzip),
            [UInt8](repeating: 0, count: 64)),
        .endless(
            "An endless name in a gzip header", gzip + [0x1F, 0x8B, 8, 8, 0, 0, 0, 0, 0, 3], [0x61]),
        .endless("Endless deflate blocks of no bytes", deflate, [0, 0, 0, 0xFF, 0xFF]),
        .endless(
            "Endless chunks of gzip members of no bytes", chunkedGzip, chunk(Deflated.bytes([], as: .gzip))),
    ]

    /// A peer that endlessly sends valid data without content. Bytes always arrive, so only the call's total timeout
    /// ends it.
    private static func endless(_ name: String, _ start: [UInt8], _ bytes: [UInt8]) -> HostilePeer {
        .flood(
            name, start, endlessly: bytes, taking: 1 << 40, request: .within(.total, .milliseconds(1500)),
            .timedOut(.total, .receivingBody))
    }

    private static func chunk(_ bytes: [UInt8]) -> [UInt8] {
        Array((String(bytes.count, radix: 16) + "\r\n").utf8) + bytes + Array("\r\n".utf8)
    }
}
