import MartletContent
import MartletCore
import MartletDiagnostics
import MartletTesting

extension HostilePeer {
    private static let ok = "HTTP/1.1 200 OK\r\n"
    private static let five = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
    private static let chunkedHead = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    private static let large = HTTPBody.pattern(1 << 40)

    /// Peers that stop sending. The timeout of each phase ends the wait.
    static let silences: [HostilePeer] = [
        .silent("Silence behind the request", after: "", .head, .awaitingHead),
        .silent("Silence behind an empty line", after: "\r\n", .head, .awaitingHead),
        .silent("Silence in the status line", after: "HTTP/1.1 20", .head, .awaitingHead),
        .silent("Silence behind an interim response", after: "HTTP/1.1 102 P\r\n\r\n", .head, .awaitingHead),
        .silent("Silence in a field", after: ok + "Content-Le", .head, .awaitingHead),
        .silent("Silence before the end of the head", after: ok + "A: b\r\n\r", .head, .awaitingHead),
        .silent("Silence behind the head", after: five, .idle, .receivingBody),
        .silent("Silence in a body", after: five + "hell", .idle, .receivingBody),
        .silent(
            "Silence in a body that ends with the connection", after: ok + "\r\nhello", .idle, .receivingBody),
        .silent("Silence in a chunk's size", after: chunkedHead + "5", .idle, .receivingBody),
        .silent("Silence in a chunk's extension", after: chunkedHead + "5;a", .idle, .receivingBody),
        .silent("Silence in a chunk", after: chunkedHead + "5\r\nhel", .idle, .receivingBody),
        .silent("Silence in a chunk's footer", after: chunkedHead + "5\r\nhello\r", .idle, .receivingBody),
        .silent("Silence between two chunks", after: chunkedHead + "5\r\nhello\r\n", .idle, .receivingBody),
        .silent("Silence behind the last chunk", after: chunkedHead + "0\r\n", .idle, .receivingBody),
        .silent("Silence in a trailer", after: chunkedHead + "0\r\nA: b", .idle, .receivingBody),
        .silent("Silence behind a trailer", after: chunkedHead + "0\r\nA: b\r\n", .idle, .receivingBody),
        .silent("Silence until the time is up, before a head", after: "", .total, .awaitingHead),
        .silent("Silence until the time is up, in a body", after: five + "h", .total, .receivingBody),
        HostilePeer(
            "Silence towards an upload", script: [.expectRequestHead, .stall],
            request: .within(.idle, .milliseconds(250)).putting(large), .timedOut(.idle, .sending)),
        HostilePeer(
            "Silence amid an upload", script: [.expectRequestHead, .readBody(100_000), .stall],
            request: .within(.idle, .milliseconds(250)).putting(large), .timedOut(.idle, .sending)),
        HostilePeer(
            "Silence towards an upload until the time is up", script: [.expectRequestHead, .stall],
            request: .within(.total, .milliseconds(1500)).putting(large), .timedOut(.total, .sending)),
        HostilePeer(
            "Silence behind an upload", script: [.expectRequestHead, .readBody(100_000), .awaitClose],
            request: .within(.head, .milliseconds(250)).putting(.pattern(100_000)),
            .timedOut(.head, .awaitingHead)),
    ]

    /// Peers that send one byte from time to time. This does not extend the head timeout or the total timeout.
    static let drips: [HostilePeer] = [
        drip("A head byte by byte", "", ok + String(repeating: "A: b\r\n", count: 40), .head, .awaitingHead),
        drip(
            "Interim responses one by one", "", String(repeating: "HTTP/1.1 102 P\r\n\r\n", count: 9), .head,
            .awaitingHead),
        drip(
            "Empty lines one by one", "", String(repeating: "\r\n", count: 200), .head, .awaitingHead),
        drip(
            "A body byte by byte", ok + "Content-Length: 100000\r\n\r\n",
            String(repeating: "x", count: 10_000), .total, .receivingBody),
        drip(
            "A chunk's extension byte by byte", chunkedHead + "1;", String(repeating: "x", count: 10_000),
            .total,
            .receivingBody),
        drip(
            "Chunks byte by byte", chunkedHead, String(repeating: "1\r\nx\r\n", count: 2000), .total,
            .receivingBody),
        drip(
            "A trailer byte by byte", chunkedHead + "0\r\nA: ", String(repeating: "x", count: 10_000), .total,
            .receivingBody),
    ]

    /// The response is incomplete whenever the timeout expires, and the idle timeout runs as well.
    private static func drip(
        _ name: String, _ start: String, _ text: String, _ timeout: HTTPError.Timeout,
        _ phase: HTTPError.Phase
    ) -> HostilePeer {
        var request = HostileRequest.within(
            timeout, timeout == .total ? .milliseconds(1500) : .milliseconds(500))
        request.clocks.idle = TestTimeouts.long
        let steps: [ScriptStep] = [
            .expectRequestHead, .send(start), .drip(text, every: .milliseconds(10)), .awaitClose,
        ]
        return HostilePeer(name, script: steps, request: request, .timedOut(timeout, phase))
    }
}
