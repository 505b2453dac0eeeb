import MartletClient

extension HostilePeer {
    /// Responses that end too early; the connection ends in order behind them.
    static let truncations: [HostilePeer] = [
        HostilePeer("Nothing", "", .refused(.emptyResponse), closes: true),
        HostilePeer("One byte", "H", .refused(.truncated), closes: true),
        HostilePeer("An empty line", "\r\n", .refused(.truncated), closes: true),
        HostilePeer("Half a status line", "HTTP/1.1 20", .refused(.truncated), closes: true),
        HostilePeer("A status line alone", "HTTP/1.1 200 OK\r\n", .refused(.truncated), closes: true),
        HostilePeer("Half a field", "HTTP/1.1 200 OK\r\nContent-Le", .refused(.truncated), closes: true),
        HostilePeer(
            "A head without its last LF", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r", .refused(.truncated),
            closes: true),
        .fields(
            "A body short of a byte", "Content-Length: 6", body: "hello", .refused(.truncated), closes: true),
        .fields(
            "A body of no bytes at all", "Content-Length: 5", body: "", .refused(.truncated), closes: true),
        .chunked("No chunk at all", "", .refused(.truncated), closes: true),
        .chunked("Half a chunk", "5\r\nhel", .refused(.truncated), closes: true),
        .chunked("No last chunk", "5\r\nhello\r\n", .refused(.truncated), closes: true),
        .chunked(
            "A last chunk without the empty line", "5\r\nhello\r\n0\r\n", .refused(.truncated), closes: true),
        .chunked(
            "A last chunk without its last LF", "5\r\nhello\r\n0\r\n\r", .refused(.truncated), closes: true),
        .chunked(
            "A chunk of a size that never comes", "7FFFFFFFFFFFFFFF\r\nhello", .refused(.truncated),
            closes: true),
    ]
}
