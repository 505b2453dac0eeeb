import MartletCore
import MartletWire

extension HostilePeer {
    private static let rest = "\r\nContent-Length: 4\r\n\r\nEVIL"

    /// Invalid status lines, and tolerated deviations.
    static let statusLines: [HostilePeer] = [
        HostilePeer(
            "A status of four digits", "HTTP/1.1 1000 X" + rest, .rejected(.invalidStatusCode, at: 12)),
        HostilePeer("A status with a letter", "HTTP/1.1 20x OK" + rest, .rejected(.invalidStatusCode, at: 11)),
        HostilePeer("A status of zeros", "HTTP/1.1 000 OK" + rest, .rejected(.invalidStatusCode, at: 9)),
        HostilePeer("A status below 100", "HTTP/1.1 099 OK" + rest, .rejected(.invalidStatusCode, at: 9)),
        HostilePeer("A negative status", "HTTP/1.1 -20 OK" + rest, .rejected(.invalidStatusCode, at: 9)),
        HostilePeer("A status with a sign", "HTTP/1.1 +200 OK" + rest, .rejected(.invalidStatusCode, at: 9)),
        HostilePeer("A status of one digit", "HTTP/1.1 2" + rest, .rejected(.invalidStatusCode, at: 10)),
        HostilePeer("No status at all", "HTTP/1.1" + rest, .rejected(.invalidStatusLine, at: 8)),
        HostilePeer(
            "A status in Arabic digits", "HTTP/1.1 ٢٠٠ OK" + rest, .rejected(.invalidStatusCode, at: 9)),
        HostilePeer(
            "No space before the status", "HTTP/1.1200 OK" + rest, .rejected(.invalidStatusLine, at: 8)),
        HostilePeer(
            "Two spaces before the status", "HTTP/1.1  200 OK" + rest, .rejected(.invalidStatusCode, at: 9)),
        HostilePeer(
            "A tab before the status", "HTTP/1.1\t200 OK" + rest, .rejected(.invalidStatusLine, at: 8)),
        HostilePeer(
            "No space behind the status", "HTTP/1.1 200OK" + rest, .rejected(.invalidStatusLine, at: 12)),
        HostilePeer(
            "A NUL in the reason", "HTTP/1.1 200 O\0K" + rest, .rejected(.malformedFieldValue(0), at: 14)),
        HostilePeer(
            "A lone CR in the reason", "HTTP/1.1 200 O\rEVIL: 1" + rest, .rejected(.bareCarriageReturn, at: 14)
        ),
        HostilePeer("HTTP in lower case", "http/1.1 200 OK" + rest, .rejected(.invalidStatusLine, at: 0)),
        HostilePeer("A space before HTTP", " HTTP/1.1 200 OK" + rest, .rejected(.invalidStatusLine, at: 0)),
        HostilePeer(
            "A byte order mark", "\u{FEFF}HTTP/1.1 200 OK" + rest, .rejected(.invalidStatusLine, at: 0)),
        HostilePeer("A version without a dot", "HTTP/11 200 OK" + rest, .rejected(.invalidStatusLine, at: 6)),
        HostilePeer(
            "A version of two digits", "HTTP/1.10 200 OK" + rest, .rejected(.invalidStatusLine, at: 8)),
        HostilePeer("HTTP/2 in a status line", "HTTP/2 200 OK" + rest, .rejected(.unsupportedVersion, at: 5)),
        HostilePeer(
            "HTTP/2.0 in a status line", "HTTP/2.0 200 OK" + rest, .rejected(.unsupportedVersion, at: 5)),
        HostilePeer(
            "HTTP/0.9 in a status line", "HTTP/0.9 200 OK" + rest, .rejected(.unsupportedVersion, at: 5)),
        HostilePeer(
            "An HTTP/0.9 answer", "EVIL page without a head\n", .rejected(.invalidStatusLine, at: 0),
            closes: true),
        HostilePeer(
            "A page without a head", "<html><body>EVIL</body></html>", .rejected(.invalidStatusLine, at: 0)),
        HostilePeer(
            "A request in place of a response", "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            .rejected(.invalidStatusLine, at: 0)),
        HostilePeer("HTTP's second byte wrong", "HXTP", .rejected(.invalidStatusLine, at: 1)),
        HostilePeer("SSH", "SSH-2.0-OpenSSH_9.2p1\r\n", .rejected(.invalidStatusLine, at: 0)),
        HostilePeer("SMTP", "220 mail.example ESMTP EVIL\r\n", .rejected(.invalidStatusLine, at: 0)),
        HostilePeer("RTSP", "RTSP/1.0 200 OK" + rest, .rejected(.invalidStatusLine, at: 0)),
        HostilePeer("Shoutcast", "ICY 200 OK" + rest, .rejected(.invalidStatusLine, at: 0)),
        HostilePeer("Redis", "-ERR unknown command\r\n", .rejected(.invalidStatusLine, at: 0)),
        HostilePeer(
            "The settings frame of HTTP/2", [0, 0, 0, 4, 0, 0, 0, 0, 0], .rejected(.invalidStatusLine, at: 0)),
        HostilePeer(
            "The preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", .rejected(.invalidStatusLine, at: 0)),
        HostilePeer("A TLS alert", [0x15, 3, 3, 0, 2, 2, 10], .rejected(.invalidStatusLine, at: 0)),
        HostilePeer("A TLS hello", [0x16, 3, 1, 0, 5, 2, 0, 0, 1, 0], .rejected(.invalidStatusLine, at: 0)),
        HostilePeer("A NUL", [0], .rejected(.invalidStatusLine, at: 0)),
        HostilePeer("A lone CR first", "\rHTTP/1.1 200 OK" + rest, .rejected(.bareCarriageReturn, at: 0)),
        HostilePeer(
            "An empty line first", "\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            .answered("ok", isKept: true)),
        HostilePeer(
            "No reason and no space for it", "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok",
            .answered("ok", isKept: true)),
        HostilePeer(
            "A status of no known meaning", "HTTP/1.1 299 Odd\r\nContent-Length: 2\r\n\r\nok",
            .answered("ok", isKept: true)),
        HostilePeer(
            "The largest status", "HTTP/1.1 999 Odd\r\nContent-Length: 2\r\n\r\nok",
            .answered("ok", isKept: true)),
    ]
}
