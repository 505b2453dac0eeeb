import Martlet
import MartletCore
import MartletTesting
import MartletWebSocket
import Synchronization
import Testing

@testable import MartletCLI

@Suite("martlet ws", .timeLimit(.minutes(5)))
struct WebSocketCommandTests {
    private func run(_ words: [String], input: [String], endsInput: Bool = true) async throws -> (String, UsageError?) {
        var parser = CommandLineParser(WebSocketCommand.options)
        try parser.read(words)
        let plan = try await WebSocketPlan(parser.groups[0])
        var configuration = SessionConfiguration.ephemeral
        configuration.authentication = plan.authentication
        let (pieces, source) = AsyncStream.makeStream(of: [UInt8].self)
        for piece in input { source.yield(Array(piece.utf8)) }
        if endsInput { source.finish() }
        let session = HTTPSession(configuration: configuration)
        let printed = Mutex<[UInt8]>([])
        let result: Result<Void, any Error>
        do {
            try await plan.run(session, pieces) { bytes in printed.withLock { $0 += bytes } }
            result = .success(())
        } catch { result = .failure(error) }
        source.finish()
        return (String(decoding: printed.withLock { $0 }, as: UTF8.self), WebSocketPlan.failure(in: result))
    }

    private func url(_ origin: TestOrigin) -> String { "ws" + origin.url("/").dropFirst(4) }

    @Test("Lines become messages, messages become lines, and the end of the input closes the connection")
    func lines() async throws {
        try await TestOrigin.withOrigin(handler: .webSocketEcho()) { origin in
            let (text, failure) = try await run([url(origin)], input: ["one\ntw", "o\r\n\nthree"])
            #expect(text == "one\ntwo\n\nthree\n")
            #expect(failure == nil)
            let (json, _) = try await run(["--json", "--ping", "0", "--no-compression", url(origin)], input: ["ä\"\n"])
            #expect(
                json == "{\"type\":\"text\",\"data\":\"ä\\\"\"}\n{\"type\":\"close\",\"code\":1000,\"reason\":\"\"}\n")
        }
    }

    @Test("The options reach the server, and bytes are printed in Base64 as JSON")
    func options() async throws {
        let handler = OriginHandler.webSocket(subprotocol: "b") { socket in
            let names = ["Sec-WebSocket-Protocol", "Authorization", "X-A", "Sec-WebSocket-Extensions"]
            try await socket.send(
                .binary(Array(names.map { socket.request.headers[$0] ?? "-" }.joined(separator: "|").utf8)))
            try await socket.close(.normalClosure, reason: "done")
            _ = try await socket.receive()
        }
        try await TestOrigin.withOrigin(handler: handler) { origin in
            let words = [
                "--subprotocol", "a", "--subprotocol", "b", "-H", "X-A: 1", "--oauth2-bearer", "t", "--no-compression",
                "--keep-open",
            ]
            let (text, failure) = try await run(words + [url(origin)], input: [], endsInput: false)
            #expect(text == "a, b|Bearer t|1|-")
            #expect(failure == nil)
            let (json, _) = try await run(words + ["--json", url(origin)], input: [], endsInput: false)
            #expect(json.contains("{\"type\":\"binary\",\"base64\":\"YSwgYnxCZWFyZXIgdHwxfC0=\"}\n"))
            #expect(json.hasSuffix("{\"type\":\"close\",\"code\":1000,\"reason\":\"done\"}\n"))
        }
    }

    @Test("Failures have the exit codes of curl")
    func exitCodes() async throws {
        let handler = OriginHandler { request in
            guard request.path != "/403" else { return .text("", status: 403) }
            return try await OriginHandler.webSocket { socket in
                switch request.path {
                case "/1011": try await socket.close(.internalError, reason: "broken")
                case "/violation": try await socket.send(3)
                case "/large": try await socket.send(.text(String(repeating: "a", count: 2000)))
                default: return
                }
                _ = try await socket.receive()
            }.respond(to: request)
        }
        try await TestOrigin.withOrigin(handler: handler) { origin in
            for (path, status) in [
                ("/403", 22), ("/1011", 56), ("/violation", 8), ("/large", 63), ("/lost", 56),
            ] as [(String, Int32)] {
                let words = ["--max-filesize", "1000", "ws" + origin.url(path).dropFirst(4)]
                let (_, failure) = try await run(words, input: [], endsInput: false)
                #expect(failure?.status.code == status, "\(path): \(String(describing: failure))")
            }
        }
        for words in [[], ["ws://a/", "ws://b/"], ["-d", "x", "ws://a/"], ["-H", "Host:", "ws://a/"]] {
            await #expect(throws: UsageError.self, "\(words)") { try await run(words, input: []) }
        }
    }
}
