import MartletWire

/// Parses a typical head repeatedly: `head-parsing COUNT`.
///
/// It prints the size of the head in bytes, the number of repetitions and the duration in seconds.
@main
struct HeadParsing {
    /// The response head of a typical web server, about 400 bytes long.
    static let head = """
        HTTP/1.1 200 OK\r
        Server: nginx/1.22.1\r
        Date: Fri, 21 Nov 2025 13:32:43 GMT\r
        Content-Type: application/json; charset=utf-8\r
        Content-Length: 1024\r
        Connection: keep-alive\r
        Last-Modified: Wed, 12 Nov 2025 08:15:30 GMT\r
        ETag: "5f3a-18c2b7d9e40"\r
        Cache-Control: public, max-age=3600\r
        Vary: Accept-Encoding\r
        Strict-Transport-Security: max-age=63072000; includeSubDomains\r
        X-Content-Type-Options: nosniff\r
        Accept-Ranges: bytes\r
        \r

        """

    static func main() throws {
        let count = CommandLine.arguments.count > 1 ? Int(CommandLine.arguments[1]) ?? 1 : 1
        let bytes = Array(head.utf8)
        var parser = HeadParser()
        var statuses = 0
        let start = ContinuousClock.now
        for _ in 0..<count {
            guard let head = try parser.parse(bytes.span) else { break }
            statuses += head.status
            parser.reset()
        }
        let seconds = (ContinuousClock.now - start) / .seconds(1)
        print("{\"size\":\(bytes.count),\"count\":\(statuses / 200),\"seconds\":\(seconds)}")
    }
}
