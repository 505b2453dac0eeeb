import MartletContent
import MartletCore
import MartletWire

extension HostilePeer {
    private static let hello = "5\r\nhello\r\n0\r\n\r\n"

    /// Heads that frame the body in two ways, not at all, or wrongly.
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
                .rejected(.conflictingContentLengths, at: 52)),
            .fields(
                "Two different lengths in one field", "Content-Length: 5, 6",
                .rejected(.conflictingContentLengths, at: 33)),
            .fields(
                "The same length in two fields", "Content-Length: 5\r\nContent-Length: 5", body: "hello",
                .answered("hello", isKept: true)),
            .fields(
                "The same length twice in one field", "Content-Length: 5, 5", body: "hello",
                .answered("hello", isKept: true)),
            .fields(
                "Content-Length with a space before its colon", "Content-Length : 4",
                .rejected(.whitespaceBeforeColon, at: 31)),
            .fields(
                "Transfer-Encoding with a space before its colon", "Transfer-Encoding : chunked",
                body: hello, .rejected(.whitespaceBeforeColon, at: 34)),
            .fields(
                "Transfer-Encoding with a tab before its colon", "Transfer-Encoding\t: chunked",
                body: hello, .rejected(.whitespaceBeforeColon, at: 34)),
            .fields(
                "Transfer-Encoding with a vertical tab in its value", "Transfer-Encoding: \u{0B}chunked",
                body: hello, .rejected(.malformedFieldValue(11), at: 36)),
            .fields(
                "Transfer-Encoding in two fields", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
                body: hello, .rejected(.repeatedChunked, at: 36)),
            .fields(
                "Transfer-Encoding folded and in capitals", "Transfer-Encoding:\r\n CHUNKED", body: hello,
                .answered("hello", isKept: true)),
            HostilePeer(
                "Transfer-Encoding in HTTP/1.0",
                "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + hello,
                .rejected(.transferEncodingInHTTP10, at: 36), closes: true),
            HostilePeer(
                "A length in HTTP/1.0 without keep-alive",
                "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhelloEVIL", .answered("hello", isKept: false)),
            .fields(
                "No framing, and a connection that ends", "Connection: keep-alive", body: "hello",
                .answered("hello", isKept: false), closes: true),
        ] + lengths + transferCodings

    private static let lengths: [HostilePeer] =
        [
            "+5", "-1", "-0", "0x5", "5 5", "5;", "1e1", "٥", "5.0", "five", "", "5,", ",5", "5,,5", "\"5\"",
            "5\u{A0}",
        ].map { length($0, .invalidContentLength) }
        + [
            "18446744073709551621", "9223372036854775808", "18446744073709551616", "99999999999999999999",
            "340282366920938463463374607431768211461",
        ].map { length($0, .contentLengthOverflow) }

    private static func length(_ value: String, _ fault: WireErrorCode) -> HostilePeer {
        .fields("Content-Length: “\(value)”", "Content-Length: \(value)", .rejected(fault, at: 33))
    }

    private static let transferCodings: [HostilePeer] =
        [
            "xchunked", "chunkedx", "gzip, chunked", "identity", "\"chunked\"", "chunked;q=1",
            "chunked\u{A0}", "chunked chunked", "deflate",
        ].map { coding($0, .unsupportedTransferCoding) }
        + ["chunked, identity", "chunked, gzip"].map { coding($0, .chunkedNotLast) }
        + ["", ","].map { coding($0, .emptyTransferEncoding) } + [
            coding("chunked, chunked", .repeatedChunked)
        ]

    private static func coding(_ value: String, _ fault: WireErrorCode) -> HostilePeer {
        .fields(
            "Transfer-Encoding: “\(value)”", "Transfer-Encoding: \(value)", body: hello,
            .rejected(fault, at: 36))
    }
}
