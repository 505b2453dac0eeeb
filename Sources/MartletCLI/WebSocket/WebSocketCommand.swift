import ArgumentParser
import FoundationEssentials
import Martlet
import MartletStreams
import MartletWebSocket

/// `martlet ws`: sends the lines of standard input as messages, and prints received messages.
struct WebSocketCommand: WordsCommand {
    static let path = ["ws"]
    static let configuration = makeConfiguration("Exchange messages over a WebSocket connection")

    @Argument(parsing: .captureForPassthrough, help: "Options and a URL") var words: [String] = []

    static func run(_ groups: [TransferOptions]) async throws(UsageError) -> ExitStatus {
        let group = groups[0]
        let plan = try await WebSocketPlan(group)
        var configuration = try await SessionPlan.configuration(
            for: group, usesTLS: plan.url.scheme != .http || group.redirects.followsRedirects,
            jar: CookiePlan.makeJar())
        configuration.authentication = plan.authentication
        if group.redirects.followsRedirects { configuration.redirects = group.redirects }
        let session = ProgramSessions.shared.make(configuration)
        let output = BodyOutput(mayBeBinary: group.webSocket.printsJSON)
        let result = await UploadCommand.interruptible {
            try await plan.run(session, FileInput(nil)) { bytes in try await output.write(bytes) }
        }
        await Console.flush()
        if let failure = WebSocketPlan.failure(in: result) { throw failure }
        return .success
    }

    static let options = CommandOptions(
        OptionTable.rows(own, shared, helps: helps, rejecting: [:], others: "has no meaning for WebSocket"),
        usage: "martlet ws [options] URL",
        notes: """


            Each line of standard input is sent as a text. Received texts are printed as lines, and bytes unchanged.
            After the end of standard input the connection is closed.
            """
    ) { $0.redirects.followsRedirects = true }

    private static let own: [CurlOption] = [
        .toggle("--json", "Print each message, and the close code, as a JSON object on a line", \.webSocket.printsJSON),
        .seconds("--ping", "Send a ping this often; 20 by default, 0 for never", \.webSocket.pingInterval),
        .list("--subprotocol NAME", "Offer this subprotocol; can be repeated", \.webSocket.subprotocols) { $0 },
        .toggle("--compression", "Offer compression, the default; --no-compression does not", \.webSocket.compresses),
        .toggle("--keep-open", "Stay connected after the end of standard input", \.webSocket.staysOpen),
        .size("--max-filesize", "Limit the size of a received message; 16M by default", \.webSocket.messageLimit),
        .toggle(
            "-L, --location", "Follow redirects, the default; --no-location does not", \.redirects.followsRedirects),
    ]

    private static let shared =
        OptionTable.named("url header user-agent referer globoff max-redirs proto-redir")
        + OptionTable.callers + OptionTable.cookies + OptionTable.named("connect-timeout max-time")
        + OptionTable.connecting + OptionTable.proxy + OptionTable.security
        + OptionTable.named("silent show-error no-buffer disable version help config")

    private static let helps = [
        "max-time": "Limit the time of the opening handshake",
        "silent": "Print nothing to standard error",
    ]
}

/// The options that only `ws` has.
struct WebSocketCommandOptions: Sendable {
    var printsJSON = false
    var pingInterval: Duration? = .seconds(20)
    var subprotocols: [String] = []
    var compresses = true
    var staysOpen = false
    var messageLimit: Int? = 16 << 20
}

/// The connection of a command line.
struct WebSocketPlan: Sendable {
    /// The maximum size of a line of standard input.
    private static let lineLimit = 16 << 20

    let url: HTTPURL
    let authentication: AuthenticationSettings
    private let headers: HTTPHeaders
    private let options: WebSocketOptions
    private let group: WebSocketCommandOptions

    init(_ group: TransferOptions) async throws(UsageError) {
        try check(group.urls.count == 1, "give one URL; try martlet ws --help")
        let text = try CommandLineURL.completed(group.urls[0], disablesGlobbing: group.disablesGlobbing)
        var given = text
        if case .text(let mapped) = HTTPTargetForm.text(text).withHTTPScheme { given = mapped }
        let url = try CommandLineURL.parsed(given)
        let caller = try await CredentialPlan.load(group)
        authentication = caller.settings(for: url)
        (self.url, self.group) = (url.withoutUserInfo, group.webSocket)
        var lines = try HeaderLines(group.headerLines)
        lines.setDefaults(group)
        if let name = lines.omitted.map(\.rawName).sorted().first {
            throw UsageError("option -H '\(name):': WebSocket cannot remove fields")
        }
        headers = HTTPHeaders(lines.fields)
        options = WebSocketOptions { options in
            options.subprotocols = group.webSocket.subprotocols
            if !group.webSocket.compresses { options.compression = nil }
            options.messageLimit = group.webSocket.messageLimit.map { ByteCount($0) }
            options.pingInterval = group.webSocket.pingInterval
            options.request.timeouts.total = group.totalTimeout
            if let timeout = group.connectTimeout { options.request.timeouts.connect = timeout }
        }
    }

    /// Sends the lines of the input, and passes received messages to the output, until the connection ends.
    func run<Input: AsyncSequence & Sendable>(
        _ session: HTTPSession, _ input: Input, output: @Sendable ([UInt8]) async throws -> Void
    ) async throws where Input.Element == [UInt8] {
        let socket = try await session.openWebSocket(url, headers: headers, options: options)
        defer { socket.cancel() }
        // Unstructured: a read of standard input cannot be cancelled, and must not delay the end of the command.
        let sender = Task {
            do { try await send(input, on: socket) } catch let error where !(error is WebSocketError) {
                try? await socket.close(code: .internalError)
                throw error
            }
            if !group.staysOpen { try await socket.closeWhileReading() }
        }
        defer { sender.cancel() }
        let failure: WebSocketError?
        do {
            while let message = try await socket.receive() { try await output(bytes(of: message)) }
            failure = nil
        } catch let error as WebSocketError { failure = error }
        // The Close frame of this side may not be written yet.
        try? await socket.close()
        // Without a failure, only the sender closes with this code.
        if failure == nil, case .closed(.internalError, _) = socket.closeError { try await sender.value }
        if group.printsJSON, case .closed(let code, let reason) = socket.closeError {
            let members: JSONMembers = ["type": "close", "code": Int(code.rawValue), "reason": reason]
            try await output(Array((members.jsonLine + "\n").utf8))
        }
        if let failure { throw failure }
    }

    private func send<Input: AsyncSequence>(_ input: Input, on socket: WebSocket) async throws
    where Input.Element == [UInt8] {
        var lines = LineParser(ending: .lineFeed, limit: WebSocketPlan.lineLimit)
        func send(_ line: [UInt8]) async throws {
            guard let text = String(validating: line, as: UTF8.self) else {
                throw UsageError("standard input is not UTF-8", status: .readFailed)
            }
            try await socket.send(text)
        }
        for try await piece in input {
            lines.feed(piece)
            while let line = try lines.next() { try await send(line) }
        }
        if let line = try lines.rest() { try await send(line) }
    }

    private func bytes(of message: WebSocketMessage) -> [UInt8] {
        guard group.printsJSON else { return message.kind == .text ? message.bytes + [0x0A] : message.bytes }
        let members: JSONMembers =
            switch message {
            case .text(let text): ["type": "text", "data": text]
            case .binary(let bytes): ["type": "binary", "base64": Data(bytes).base64EncodedString()]
            }
        return Array((members.jsonLine + "\n").utf8)
    }

    /// The message and the exit code of a failure; `nil` for success.
    static func failure(in result: Result<Void, any Error>) -> UsageError? {
        switch result {
        case .success: nil
        case .failure(let error as HTTPError): UsageError("\(error)", status: ExitStatus(error))
        case .failure(let error as WebSocketError): UsageError("\(error)", status: ExitStatus(error))
        case .failure(let error as UsageError): error
        case .failure(let error as OutputError): UsageError("\(error)", status: .writeFailed)
        case .failure(is CancellationError): UsageError("the connection was interrupted", status: .interrupted)
        case .failure(let error): UsageError("standard input: \(error)", status: .readFailed)
        }
    }
}
