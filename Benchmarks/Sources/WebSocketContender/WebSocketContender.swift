import FoundationEssentials
import MartletCore
import MartletWebSocket
import Measure
import Synchronization

/// Martlet's WebSocket connections as a contender: `get|idle URL file=PATH [NAME=VALUE …]`.
///
/// A request of the scenario is a message to an echo server, over a connection that no other task uses. `kind=text`
/// sends the lines of the file in turn, `kind=binary` the whole file. `deflate=1` compresses, and `hosts=N` connects to
/// N addresses from 127.0.0.1 on.
@main
final class WebSocketContender: Client {
    static func main() {
        Program.main { arguments in
            try await Measurement(arguments, of: try WebSocketContender(arguments)).run()
        }
    }

    private let session: HTTPSession
    private let options: WebSocketOptions
    private let urls: [String]
    private let messages: [WebSocketMessage]
    private let isIdle: Bool
    /// The open connections that no task uses, and the number of messages.
    private let state = Mutex<(free: [WebSocket], count: Int)>(([], 0))

    init(_ arguments: Arguments) throws {
        let connections = arguments.number("connections", 1) * arguments.number("each", 1) + 1
        var configuration = SessionConfiguration.default
        configuration.pool.connectionsPerHost = connections
        configuration.pool.totalConnections = connections
        session = HTTPSession(configuration: configuration)
        options = WebSocketOptions { if arguments["deflate"] == nil { $0.compression = nil } }
        let parts = arguments.url.split(separator: "127.0.0.1", omittingEmptySubsequences: false)
        urls = (1...max(1, arguments.number("hosts", 1))).map { parts.joined(separator: "127.0.0.\($0)") }
        guard let path = arguments["file"] else { throw Arguments.Mistake(text: "file= is missing") }
        let bytes = try [UInt8](Data(contentsOf: URL(filePath: path)))
        messages =
            arguments["kind"] == "binary"
            ? [.binary(bytes)]
            : bytes.split(separator: UInt8(ascii: "\n")).map { .text(String(decoding: $0, as: UTF8.self)) }
        guard !messages.isEmpty else { throw Arguments.Mistake(text: "the file is empty") }
        isIdle = arguments.scenario == "idle"
    }

    func get() async throws -> UInt8? {
        let (free, number) = state.withLock { state in
            state.count += 1
            return (isIdle ? nil : state.free.popLast(), state.count)
        }
        let socket =
            if let free { free } else {
                try await session.openWebSocket(urls[number % urls.count], options: options)
            }
        let message = messages[number % messages.count]
        try await socket.send(message)
        guard let reply = try await socket.receive(), reply.kind == message.kind, size(reply) == size(message) else {
            throw UnsupportedScenario()
        }
        state.withLock { $0.free.append(socket) }
        return nil
    }

    private func size(_ message: WebSocketMessage) -> Int {
        switch message {
        case .text(let text): text.utf8.count
        case .binary(let bytes): bytes.count
        }
    }

    func discard() async throws -> Int { throw UnsupportedScenario() }
}
