import MartletContent
import Testing

/// A response with a given framing, to be cut at each of its bytes.
struct CutFraming: Sendable, CustomTestStringConvertible {
    let name: String
    /// The interim responses before it.
    var interim: [String] = []
    let head: String
    /// The body as sent on the wire.
    let body: [UInt8]
    /// The body as delivered to the caller.
    var payload = Array("hello".utf8)
    /// Whether only the end of the connection ends the body.
    var isUntilClose = false
    /// Whether the body has a coding with its own end.
    var isCoded = false

    var testDescription: String { name }
    var whole: [UInt8] { Array((interim.joined() + head).utf8) + body }
    var headLength: Int { interim.joined().utf8.count + head.utf8.count }

    /// Returns how many of the first `count` bytes belong to the head that is cut.
    func headByteCount(of count: Int) -> Int {
        interim.reduce(count) { $0 >= $1.utf8.count ? $0 - $1.utf8.count : $0 }
    }

    /// Whether `count` bytes contain only complete interim responses, or nothing.
    func isInterim(after count: Int) -> Bool {
        count <= interim.joined().utf8.count && headByteCount(of: count) == 0
    }

    /// Whether `count` bytes followed by the end are a complete response.
    func isWhole(after count: Int, _ ending: CutKind) -> Bool {
        guard isUntilClose else { return count == whole.count }
        guard ending.isOrderly, count >= headLength else { return false }
        // An empty body with a coding is valid.
        return !isCoded || count == headLength || count == whole.count
    }

    /// Whether after `count` bytes the framing is complete and only the coding is cut.
    func isCut(inCoding count: Int, _ ending: CutKind) -> Bool {
        isCoded && isUntilClose && ending.isOrderly && count > headLength && count < whole.count
    }

    private static let ok = "HTTP/1.1 200 OK\r\n"
    private static let hello = Array("hello".utf8)
    private static let chunks = Array("3;a=b\r\nhel\r\n2\r\nlo\r\n0\r\nX: y\r\n\r\n".utf8)
    private static let early = [
        "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n",
    ]
    private static let gzip = Deflated.bytes(hello, as: .gzip)

    /// One response of each framing.
    static let all: [CutFraming] = [
        CutFraming(name: "a length", head: ok + "Content-Length: 5\r\n\r\n", body: hello),
        CutFraming(
            name: "chunks with trailers", head: ok + "Transfer-Encoding: chunked\r\n\r\n", body: chunks),
        CutFraming(name: "the connection's end", head: ok + "X: y\r\n\r\n", body: hello, isUntilClose: true),
        CutFraming(
            name: "a length behind interim responses", interim: early,
            head: ok + "Content-Length: 5\r\n\r\n", body: hello),
        CutFraming(name: "no body", head: "HTTP/1.1 204 No Content\r\nX: y\r\n\r\n", body: [], payload: []),
        CutFraming(
            name: "a length and gzip",
            head: ok + "Content-Encoding: gzip\r\nContent-Length: \(gzip.count)\r\n\r\n",
            body: gzip, isCoded: true),
        CutFraming(
            name: "chunks and gzip",
            head: ok + "Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n",
            body: Array((String(gzip.count, radix: 16) + "\r\n").utf8) + gzip + Array("\r\n0\r\n\r\n".utf8),
            isCoded: true),
        CutFraming(
            name: "the connection's end and gzip", head: ok + "Content-Encoding: gzip\r\n\r\n", body: gzip,
            isUntilClose: true, isCoded: true),
    ]
}
