import MartletTesting
import Testing

@testable import MartletCLI

@Suite("Report of a finished transfer", .timeLimit(.minutes(10)))
struct TransferReportTests {
    private func text(_ report: TransferReport, _ format: String) -> String {
        let (pieces, unknown) = WriteOut(report).text(format)
        #expect(unknown.isEmpty)
        return pieces.map(\.text).joined()
    }

    @Test("%{http_connect} is the status of the proxy's response to CONNECT, granted or rejected")
    func tunnel() async throws {
        let scene = try GetScene()
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"
        let opened = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 200 Connection established\r\n\r\n"), .expectRequestHead,
            .send(answer), .awaitClose)
        try await TestOrigin.withOrigin(.plain, scripts: opened) { proxy in
            let report = try await scene.transfer(
                "-p", "-x", "127.0.0.1:\(proxy.port)", "-o", scene.file("out"), "http://h.test/")
            #expect(report.status == .success, "\(report.message)")
            #expect(text(report, "%{http_connect} %{http_code}") == "200 200")
        }
        let rejection = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"
        try await TestOrigin.withOrigin(.plain, scripts: .respond(rejection)) { proxy in
            let report = try await scene.transfer(
                "-p", "-x", "127.0.0.1:\(proxy.port)", "-o", scene.file("out"), "http://h.test/")
            #expect(report.status == .receiveFailed)
            #expect(text(report, "%{http_connect} %{http_code}") == "403 000")
        }
    }

    @Test("Heads that -v has printed when an interim response arrived are not printed again", arguments: [true, false])
    func printedHeads(isVerbose: Bool) async throws {
        let scene = try GetScene()
        try await TestOrigin.withOrigin(.plain) { request in
            let isFirst = request.path == "/a"
            return (isFirst ? OriginResponse.redirect(to: "/b") : .text("x")).with {
                $0.interim = Array(repeating: InterimResponse(102), count: isFirst ? 1 : 2)
            }
        } run: { (origin) async throws in
            let report = try await scene.transfer(
                isVerbose ? "-v" : "-s", "-L", "-o", scene.file("out"), origin.url("/a"))
            let (step, head) = (try #require(report.steps.first), try #require(report.head))
            #expect(step.text.isEmpty == isVerbose)
            let text = VerboseText.heads(
                report.passedHeads, [head, head, head], after: report.shownHeadCount, "connection ", "hit")
            #expect(text.hasPrefix("connection > GET /b") == !isVerbose)
            #expect(text.hasPrefix("* Cache-Status: hit\n< HTTP/1.1 200 OK\n") == isVerbose)
            #expect(text.split(separator: "< HTTP/1.1 200 OK").count == (isVerbose ? 2 : 4))
        }
    }

    @Test("Without a tunnel %{http_connect} is 000 and %{ftp_entry_path} is empty")
    func noTunnel() async throws {
        let scene = try GetScene()
        try await TestOrigin.withOrigin(.plain, handler: .fixed(.text("x"))) { (origin) async throws in
            let plain = try await scene.transfer("-o", scene.file("out"), origin.url("/"))
            #expect(text(plain, "%{http_connect}<%{ftp_entry_path}>") == "000<>")
            let forwarded = try await scene.transfer(
                "-x", "127.0.0.1:\(origin.port)", "-o", scene.file("out"), "http://h.test/")
            #expect(text(forwarded, "%{http_connect} %{http_code}") == "000 200")
        }
    }
}
