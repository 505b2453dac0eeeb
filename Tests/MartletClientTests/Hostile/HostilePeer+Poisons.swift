import MartletContent
import MartletCore

extension HostilePeer {
    private static let evil = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL"

    /// Complete responses with more bytes directly after them (RFC 9112 §9.3, §11.1).
    static let poisons: [HostilePeer] = [
        .fields(
            "A second response behind a length", "Content-Length: 5", body: "hello" + evil,
            .answered("hello", isKept: false)),
        .fields(
            "A second response behind an empty body", "Content-Length: 0", body: evil,
            .answered("", isKept: false)),
        .chunked(
            "A second response behind chunks", "5\r\nhello\r\n0\r\n\r\n" + evil,
            .answered("hello", isKept: false)),
        .chunked(
            "A second response behind trailers", "5\r\nhello\r\n0\r\nA: b\r\n\r\n" + evil,
            .answered("hello", isKept: false)),
        .fields("One byte too many", "Content-Length: 5", body: "hello!", .answered("hello", isKept: false)),
        .fields(
            "An empty line too many", "Content-Length: 5", body: "hello\r\n",
            .answered("hello", isKept: false)),
        HostilePeer(
            "204 with a body", "HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\nEVIL",
            .answered("", isKept: false)),
        HostilePeer(
            "204 with a response behind", "HTTP/1.1 204 No Content\r\n\r\n" + evil,
            .answered("", isKept: false)),
        HostilePeer(
            "304 with chunks behind",
            "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nEVIL\r\n0\r\n\r\n",
            .answered("", isKept: false)),
        HostilePeer(
            "304 with a response behind", "HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n" + evil,
            .answered("", isKept: false)),
        HostilePeer("HEAD with the body it speaks of", evil, .answered("", isKept: false), method: .head),
        HostilePeer(
            "HEAD with chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nEVIL\r\n0\r\n\r\n",
            .answered("", isKept: false), method: .head),
        HostilePeer(
            "HEAD with a length and no body", "HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n",
            .answered("", isKept: true), method: .head),
        HostilePeer(
            "HEAD of a body that would end with the connection", "HTTP/1.1 200 OK\r\n\r\n",
            .answered("", isKept: true), method: .head),
        HostilePeer(
            "HEAD with a content coding",
            "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 40\r\n\r\n",
            .answered("", isKept: true), method: .head),
        HostilePeer(
            "204 with a content coding", "HTTP/1.1 204 No Content\r\nContent-Encoding: gzip\r\n\r\n",
            .answered("", isKept: true)),
        HostilePeer(
            "304 with a content coding",
            "HTTP/1.1 304 Not Modified\r\nContent-Encoding: gzip\r\nContent-Length: 40\r\n\r\n",
            .answered("", isKept: true)),
    ]
}
