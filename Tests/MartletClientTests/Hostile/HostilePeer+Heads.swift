import MartletCore
import MartletStreams
import MartletWire

extension HostilePeer {
    private static func plain(
        _ name: String, _ line: String, _ fault: WireErrorCode, at offset: Int
    ) -> HostilePeer {
        .fields(name, line + "\r\nContent-Length: 4", .rejected(fault, at: offset))
    }

    /// Heads with malformed fields from byte 17 on (RFC 9112 §5).
    static let heads: [HostilePeer] = [
        plain("A NUL in a value", "X-A: a\0EVIL", .malformedFieldValue(0), at: 23),
        plain("A NUL in a name", "X\0A: EVIL", .malformedFieldName(0), at: 18),
        plain("A lone CR in a value", "X-A: a\rEVIL: b", .bareCarriageReturn, at: 23),
        plain("A lone CR in a name", "X-A\rEVIL: b", .bareCarriageReturn, at: 20),
        plain("Two CRs at a line's end", "X-A: a\r", .bareCarriageReturn, at: 23),
        plain("A DEL in a value", "X-A: a\u{7F}", .malformedFieldValue(127), at: 23),
        plain("A vertical tab in a value", "X-A: a\u{0B}b", .malformedFieldValue(11), at: 23),
        plain("A form feed in a value", "X-A: a\u{0C}b", .malformedFieldValue(12), at: 23),
        plain("An escape in a value", "X-A: \u{1B}[31mEVIL", .malformedFieldValue(27), at: 22),
        plain("A line without a colon", "EVIL", .missingColon, at: 21),
        plain("An empty name", ": EVIL", .emptyFieldName, at: 17),
        plain("A space in a name", "X A: EVIL", .malformedFieldName(32), at: 18),
        plain("A space before the colon", "X-A : EVIL", .whitespaceBeforeColon, at: 20),
        plain("A tab before the colon", "X-A\t: EVIL", .whitespaceBeforeColon, at: 20),
        plain("A parenthesis in a name", "X(A: EVIL", .malformedFieldName(40), at: 18),
        plain("A slash in a name", "X/A: EVIL", .malformedFieldName(47), at: 18),
        plain("A name in UTF-8", "Xä: EVIL", .malformedFieldName(195), at: 18),
        plain("A fold before any field", " X-A: EVIL", .misplacedFold, at: 17),
        plain("A status line among the fields", "HTTP/1.1 200 OK", .missingColon, at: 21),
        HostilePeer(
            "A pseudo-field of HTTP/2", "HTTP/1.1 200 OK\r\n:status: 404\r\n\r\n",
            .rejected(.emptyFieldName, at: 17)),
        HostilePeer(
            "Lines that end with LF", "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
            .answered("hello", isKept: true)),
        HostilePeer(
            "Lines that end either way", "HTTP/1.1 200 OK\r\nContent-Length: 5\n\r\nhello",
            .answered("hello", isKept: true)),
        .fields(
            "A value in Latin-1 and UTF-8", "X-A: äöü\r\nContent-Length: 5", body: "hello",
            .answered("hello", isKept: true)),
        .fields(
            "Blanks around a value", "Content-Length: \t 5 \t", body: "hello",
            .answered("hello", isKept: true)),
        .fields(
            "A connection that is to be closed, in capitals and a list",
            "Connection: x, CLOSE\r\nContent-Length: 5", body: "hello", .answered("hello", isKept: false)),
        .fields(
            "Keep-Alive of more seconds than fit",
            "Keep-Alive: timeout=9223372036854775807\r\nContent-Length: 5",
            body: "hello", .answered("hello", isKept: true)),
        .fields(
            "Keep-Alive of more seconds than the clock has",
            "Keep-Alive: timeout=18446744072\r\nContent-Length: 5",
            body: "hello", .answered("hello", isKept: true)),
        .fields(
            "Keep-Alive of numbers that overflow",
            "Keep-Alive: timeout=99999999999999999999999, max=99999999999999999999999\r\nContent-Length: 5",
            body: "hello", .answered("hello", isKept: true)),
        .fields(
            "Keep-Alive of numbers that are none",
            "Keep-Alive: timeout=-1, max=x, timeout, =, ;\r\nContent-Length: 5",
            body: "hello", .answered("hello", isKept: true)),
        .fields(
            "Keep-Alive of no further request", "Keep-Alive: max=0\r\nContent-Length: 5",
            body: "hello", .answered("hello", isKept: false)),
        .fields(
            "Both keep-alive and close", "Connection: keep-alive\r\nConnection: close\r\nContent-Length: 5",
            body: "hello", .answered("hello", isKept: false)),
    ]
}
