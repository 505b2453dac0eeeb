import MartletContent
import MartletCookies
import MartletCore
import MartletWire

extension HostilePeer {
    private static let early = "HTTP/1.1 103 Early Hints\r\nLink: EVIL\r\nSet-Cookie: EVIL\r\n\r\n"
    private static let final = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

    /// Interim responses: too many, in the wrong position, or of the wrong kind (RFC 9110 §15.2).
    static let interims: [HostilePeer] = [
        HostilePeer(
            "Ten early hints, whose fields must not leak", String(repeating: early, count: 10) + final,
            .answered("hello", isKept: true)),
        HostilePeer(
            "Eleven early hints", String(repeating: early, count: 11) + final,
            .rejected(.tooManyInformationalResponses(limit: 10), at: 0)),
        HostilePeer(
            "A flood of early hints", String(repeating: early, count: 20_000),
            .rejected(.tooManyInformationalResponses(limit: 10), at: 0)),
        HostilePeer(
            "A flood of interim responses of unknown kinds",
            (0..<1000).map { "HTTP/1.1 \(102 + $0 % 97) X\r\n\r\n" }.joined(),
            .rejected(.tooManyInformationalResponses(limit: 10), at: 0)),
        HostilePeer(
            "100 although nobody asked", "HTTP/1.1 100 Continue\r\n\r\n" + final,
            .answered("hello", isKept: true)),
        HostilePeer(
            "100 with a length that covers the final response",
            "HTTP/1.1 100 Continue\r\nContent-Length: 40\r\n\r\n" + final, .answered("hello", isKept: true)),
        HostilePeer(
            "100 that claims to be chunked",
            "HTTP/1.1 100 Continue\r\nTransfer-Encoding: chunked\r\n\r\n" + final,
            .answered("hello", isKept: true)),
        HostilePeer(
            "101 although nobody asked",
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\nEVIL",
            .rejected(.unexpectedUpgrade, at: 0)),
        HostilePeer(
            "101 behind 100", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 101 Switching Protocols\r\n\r\nEVIL",
            .rejected(.unexpectedUpgrade, at: 0)),
        HostilePeer(
            "100 and no more", "HTTP/1.1 100 Continue\r\n\r\n", .rejected(.emptyResponse, at: 0), closes: true),
        HostilePeer(
            "100 behind the final response", final + "HTTP/1.1 100 Continue\r\n\r\n",
            .answered("hello", isKept: false)),
        HostilePeer(
            "A malformed interim response", "HTTP/1.1 103 Early\r\nEVIL\r\n\r\n" + final,
            .rejected(.missingColon, at: 24)),
    ]
}
