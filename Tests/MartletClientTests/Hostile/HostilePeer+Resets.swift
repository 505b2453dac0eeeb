import MartletContent
import MartletCaching
import MartletCore
import MartletTesting

extension HostilePeer {
    private static let head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
    private static let chunkedHead = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

    private static func reset(_ name: String, behind text: String) -> HostilePeer {
        HostilePeer(name, script: [.expectRequestHead, .send(text), .reset], .reset)
    }

    private static func resetUpload(_ name: String, _ steps: ScriptStep..., body: HTTPBody) -> HostilePeer {
        HostilePeer(
            name, script: [.expectRequestHead] + steps + [.reset],
            request: HostileRequest(method: .put, body: body), .reset)
    }

    /// Peers that reset the connection. The error reports the reset in each phase, whether the reader or the writer
    /// sees it first.
    static let resets: [HostilePeer] = [
        reset("A reset behind the request", behind: ""),
        reset("A reset in the status line", behind: "HTTP/1.1 20"),
        reset("A reset behind an interim response", behind: "HTTP/1.1 103 E\r\nLink: EVIL\r\n\r\n"),
        reset("A reset before the end of the head", behind: "HTTP/1.1 200 OK\r\nA: b\r\n"),
        reset("A reset behind the head", behind: head),
        reset("A reset in a body", behind: head + "hell"),
        reset("A reset in a body that ends with the connection", behind: "HTTP/1.1 200 OK\r\n\r\nhello"),
        reset("A reset in a chunk", behind: chunkedHead + "5\r\nhel"),
        reset("A reset between two chunks", behind: chunkedHead + "5\r\nhello\r\n"),
        reset("A reset in the trailers", behind: chunkedHead + "0\r\nA: b"),
        resetUpload("A reset towards an upload", body: .pattern(16 << 20)),
        resetUpload(
            "A reset towards an upload in memory", body: .bytes([UInt8](repeating: 0, count: 4 << 20))),
        resetUpload("A reset amid an upload", .readBody(200_000), body: .pattern(16 << 20)),
        resetUpload(
            "A reset amid an upload in chunks", .readBody(200_000),
            body: .stream { PatternPieces(byteCount: 16 << 20) }),
        resetUpload("A reset behind an upload", .readBody(100_000), body: .pattern(100_000)),
        resetUpload(
            "A reset amid an upload whose answer has begun", .readBody(100_000),
            .send("HTTP/1.1 200 OK\r\n\r\nhello"), body: .pattern(16 << 20)),
    ]
}
