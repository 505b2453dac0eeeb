import MartletClient

extension HostilePeer {
    private static let hello = "5\r\nhello\r\n0\r\n\r\n"

    /// Heads that frame the body in two ways, in none, or wrongly.
    static let framings: [HostilePeer] =
        [
            .fields(
                "Content-Length before Transfer-Encoding", "Content-Length: 3\r\nTransfer-Encoding: chunked",
                body: hello, .answered("hello", isKept: false)),
            .fields(
                "Content-Length behind Transfer-Encoding", "Transfer-Encoding: chunked\r\nContent-Length: 3",
                body: hello, .answered("hello", isKept: false)),
            .fields(
                "Content-Length that covers a smuggled response beside Transfer-Encoding",
                "Content-Length: 60\r\nTransfer-Encoding: chunked",
                body: hello + "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL",
                .answered("hello", isKept: false)),
            .fields(
                "Two different Content-Lengths", "Content-Length: 5\r\nContent-Length: 6",
                .refused(.protocolViolation, at: 52)),
            .fields(
                "Two different lengths in one field", "Content-Length: 5, 6",
                .refused(.protocolViolation, at: 33)),
            .fields(
                "The same length in two fields", "Content-Length: 5\r\nContent-Length: 5", body: "hello",
                .answered("hello", isKept: true)),
            .fields(
                "The same length twice in one field", "Content-Length: 5, 5", body: "hello",
                .answered("hello", isKept: true)),
            .fields(
                "Content-Length with a space before its colon", "Content-Length : 4",
                .refused(.protocolViolation, at: 31)),
            .fields(
                "Transfer-Encoding with a space before its colon", "Transfer-Encoding : chunked",
                body: hello, .refused(.protocolViolation, at: 34)),
            .fields(
                "Transfer-Encoding with a tab before its colon", "Transfer-Encoding\t: chunked",
                body: hello, .refused(.protocolViolation, at: 34)),
            .fields(
                "Transfer-Encoding with a vertical tab in its value", "Transfer-Encoding: \u{0B}chunked",
                body: hello, .refused(.protocolViolation, at: 36)),
            .fields(
                "Transfer-Encoding in two fields", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
                body: hello, .refused(.protocolViolation, at: 36)),
            .fields(
                "Transfer-Encoding folded and in capitals", "Transfer-Encoding:\r\n CHUNKED", body: hello,
                .answered("hello", isKept: true)),
            HostilePeer(
                "Transfer-Encoding in HTTP/1.0",
                "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + hello,
                .refused(.protocolViolation, at: 36), closes: true),
            HostilePeer(
                "A length in HTTP/1.0 without keep-alive",
                "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhelloEVIL", .answered("hello", isKept: false)),
            .fields(
                "No framing, and a connection that ends", "Connection: keep-alive", body: "hello",
                .answered("hello", isKept: false), closes: true),
        ] + lengths + codings

    private static let lengths: [HostilePeer] = [
        "+5", "-1", "-0", "0x5", "5 5", "5;", "1e1", "٥", "5.0", "five", "", "5,", ",5", "5,,5", "\"5\"",
        "5\u{A0}",
        "18446744073709551621", "9223372036854775808", "18446744073709551616", "99999999999999999999",
        "340282366920938463463374607431768211461",
    ].map { value in
        .fields(
            "Content-Length: “\(value)”", "Content-Length: \(value)",
            .refused(.protocolViolation, at: value.isEmpty ? nil : 33))
    }

    private static let codings: [HostilePeer] = [
        "xchunked", "chunkedx", "chunked, identity", "chunked, gzip", "gzip, chunked", "chunked, chunked",
        "identity",
        "", ",", "\"chunked\"", "chunked;q=1", "chunked\u{A0}", "chunked chunked", "deflate",
    ].map { value in
        .fields(
            "Transfer-Encoding: “\(value)”", "Transfer-Encoding: \(value)", body: hello,
            .refused(.protocolViolation))
    }
}
