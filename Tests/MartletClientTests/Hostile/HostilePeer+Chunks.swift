import MartletCore
import MartletWire

extension HostilePeer {
    /// Chunked bodies that violate the grammar from byte 47 on (RFC 9112 §7.1).
    static let chunks: [HostilePeer] = [
        .chunked(
            "A size of seventeen digits", "10000000000000005\r\nEVIL",
            .rejected(.chunkSizeTooLong(limit: 16), at: 63)),
        .chunked(
            "A size of two megabytes of zeros", String(repeating: "0", count: 2 << 20),
            .rejected(.chunkSizeTooLong(limit: 16), at: 63)),
        .chunked("A size of 2^63", "8000000000000000\r\nEVIL", .rejected(.chunkSizeOverflow, at: 62)),
        .chunked("A size of 2^64 - 1", "FFFFFFFFFFFFFFFF\r\nEVIL", .rejected(.chunkSizeOverflow, at: 62)),
        .chunked("A negative size", "-5\r\nEVIL!\r\n0\r\n\r\n", .rejected(.invalidChunkSize, at: 47)),
        .chunked("A size with a sign", "+5\r\nEVIL!\r\n0\r\n\r\n", .rejected(.invalidChunkSize, at: 47)),
        .chunked("A size with a prefix", "0x5\r\nEVIL!\r\n0\r\n\r\n", .rejected(.invalidChunkSize, at: 48)),
        .chunked("An empty size", "\r\nEVIL", .rejected(.invalidChunkSize, at: 47)),
        .chunked("An extension without a size", ";a=b\r\nEVIL", .rejected(.invalidChunkSize, at: 47)),
        .chunked(
            "A size with an underscore", "5_\r\nEVIL!\r\n0\r\n\r\n", .rejected(.invalidChunkSize, at: 48)),
        .chunked(
            "A size with a letter beyond F", "5g\r\nEVIL!\r\n0\r\n\r\n", .rejected(.invalidChunkSize, at: 48)),
        .chunked("A space before the size", " 5\r\nEVIL!\r\n0\r\n\r\n", .rejected(.invalidChunkSize, at: 47)),
        .chunked("Two sizes", "5 5\r\nEVIL!\r\n0\r\n\r\n", .rejected(.invalidChunkSize, at: 49)),
        .chunked("A size in Arabic digits", "٥\r\nEVIL!\r\n0\r\n\r\n", .rejected(.invalidChunkSize, at: 47)),
        .chunked(
            "A size line that ends with LF", "5\nEVIL!\r\n0\r\n\r\n", .rejected(.invalidChunkLineEnd, at: 48)),
        .chunked(
            "A size line that ends with CR", "5\rEVIL!\r\n0\r\n\r\n", .rejected(.invalidChunkLineEnd, at: 49)),
        .chunked(
            "An extension that ends with LF", "5;a\nEVIL!\r\n0\r\n\r\n",
            .rejected(.invalidChunkLineEnd, at: 50)),
        .chunked(
            "An extension with a NUL", "5;a\0\r\nEVIL!\r\n0\r\n\r\n",
            .rejected(.invalidChunkExtension(0), at: 50)),
        .chunked(
            "A chunk longer than its size", "3\r\nabcEVIL\r\n0\r\n\r\n", .rejected(.invalidChunkFooter, at: 53)
        ),
        .chunked(
            "A chunk shorter than its size", "5\r\nabc\r\n0\r\n\r\nEVIL",
            .rejected(.invalidChunkFooter, at: 55)
        ),
        .chunked("A chunk without its CRLF", "5\r\nhello0\r\n\r\n", .rejected(.invalidChunkFooter, at: 55)),
        .chunked(
            "Any two bytes in place of CRLF", "5\r\nhelloXX0\r\n\r\n", .rejected(.invalidChunkFooter, at: 55)),
        .chunked("A chunk that ends with LF", "5\r\nhello\n0\r\n\r\n", .rejected(.invalidChunkFooter, at: 55)),
        .chunked(
            "A chunk that ends with CR and a digit", "5\r\nhello\r0\r\n\r\n",
            .rejected(.invalidChunkFooter, at: 56)),
        .chunked("A last chunk that ends with LF", "0\n\r\n", .rejected(.invalidChunkLineEnd, at: 48)),
        .chunked("A trailer line that ends with LF", "0\r\nA: b\n\r\n", .rejected(.bareLineFeed, at: 54)),
        .chunked(
            "A trailer section that ends with LF", "0\r\nA: b\r\n\n", .rejected(.bareLineFeed, at: 56)),
        .chunked("A trailer without a colon", "0\r\nEVIL\r\n\r\n", .rejected(.missingColon, at: 54)),
        .chunked("A trailer with a NUL", "0\r\nA: \0\r\n\r\n", .rejected(.malformedFieldValue(0), at: 53)),
        .chunked(
            "A response where the trailers would be",
            "0\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL", .rejected(.missingColon, at: 54)),
        .chunked(
            "Forty extensions of a KiB",
            String(repeating: "1;" + String(repeating: "x", count: 1024) + "\r\na\r\n", count: 40),
            .rejected(.chunkExtensionsTooLarge(limit: 16384), at: 16522)),
        .chunked(
            "Trailers of a megabyte",
            "0\r\n" + String(repeating: "EVIL: " + String(repeating: "x", count: 1000) + "\r\n", count: 1000),
            .rejected(.trailersTooLarge(limit: 16384), at: 16434)),
        .chunked("An empty body and nothing else", "0\r\n\r\n", .answered("", isKept: true)),
        .chunked(
            "Sixteen digits, zeros first", "0000000000000005\r\nhello\r\n0\r\n\r\n",
            .answered("hello", isKept: true)),
        .chunked(
            "Small extensions", "5;a=b;c=\"d\"\r\nhello\r\n0;e\r\n\r\n", .answered("hello", isKept: true)),
    ]
}
