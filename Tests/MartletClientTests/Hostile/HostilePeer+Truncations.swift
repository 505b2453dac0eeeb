import MartletConditions
import MartletCore

extension HostilePeer {
    /// Responses that end too early; the connection then ends gracefully.
    static let truncations: [HostilePeer] = [
        HostilePeer("Nothing", "", .rejected(.emptyResponse, at: 0), closes: true),
        HostilePeer("One byte", "H", .truncated, closes: true),
        HostilePeer("An empty line", "\r\n", .truncated, closes: true),
        HostilePeer("Half a status line", "HTTP/1.1 20", .truncated, closes: true),
        HostilePeer("A status line alone", "HTTP/1.1 200 OK\r\n", .truncated, closes: true),
        HostilePeer("Half a field", "HTTP/1.1 200 OK\r\nContent-Le", .truncated, closes: true),
        HostilePeer(
            "A head without its last LF", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r", .truncated,
            closes: true),
        .fields(
            "A body short of a byte", "Content-Length: 6", body: "hello", .truncated, closes: true),
        .fields(
            "A body of no bytes at all", "Content-Length: 5", body: "", .truncated, closes: true),
        .chunked("No chunk at all", "", .truncated, closes: true),
        .chunked("Half a chunk", "5\r\nhel", .truncated, closes: true),
        .chunked("No last chunk", "5\r\nhello\r\n", .truncated, closes: true),
        .chunked(
            "A last chunk without the empty line", "5\r\nhello\r\n0\r\n", .truncated, closes: true),
        .chunked(
            "A last chunk without its last LF", "5\r\nhello\r\n0\r\n\r", .truncated, closes: true),
        .chunked(
            "A chunk of a size that never comes", "7FFFFFFFFFFFFFFF\r\nhello", .truncated,
            closes: true),
    ]
}
