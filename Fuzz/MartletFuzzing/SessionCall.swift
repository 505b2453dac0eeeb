import MartletContent
import MartletURL
import MartletCore
import MartletTransport
import MartletWire

/// The call that a session repeats.
struct SessionCall: Sendable {
    private enum Kind: Sendable {
        case get
        case head
        case post
        case chunkedPost
        case leave
    }

    private let kind: Kind
    private let options: RequestOptions
    private let hasSmallLimits: Bool

    /// The maximum number of body bytes that are collected.
    private static let bodyLimit = 64 * 1024
    private static let smallBodyLimit = 100

    /// Creates the call that the first controls select.
    init(_ input: FuzzInput) {
        kind =
            switch input[0] {
            case UInt8(ascii: "H"): .head
            case UInt8(ascii: "P"): .post
            case UInt8(ascii: "L"): .chunkedPost
            case UInt8(ascii: "S"): .leave
            default: .get
            }
        var options = RequestOptions()
        options.returnsRawBody = input.isSet(0, at: 1)
        options.decompresses = !input.isSet(1, at: 1)
        options.version = input.isSet(3, at: 1) ? .http10 : .http11
        self.options = options
        hasSmallLimits = input.isSet(2, at: 1)
    }

    /// Whether requests have a body, so that a response can arrive before all of it is sent.
    var hasBody: Bool { kind == .post || kind == .chunkedPost }
    /// Whether bodies are abandoned after their first piece.
    var leavesBody: Bool { kind == .leave }

    /// Returns a configuration whose timeouts no response can reach.
    func configuration(connectingTo peer: ScriptedPeer) -> SessionConfiguration {
        var configuration = SessionConfiguration.ephemeral
        configuration.connector = peer
        // The timeout outlasts a stalled machine, and the fuzzer has its own timeout for hangs.
        let timeout = Duration.seconds(300)
        configuration.timeouts = Timeouts(
            poolWait: timeout, connect: timeout, head: timeout, idle: timeout, total: timeout)
        configuration.bufferedBodyLimit = ByteCount(limit)
        if hasSmallLimits {
            configuration.wireLimits.headByteLimit = 160
            configuration.wireLimits.informationalResponseLimit = 2
        }
        return configuration
    }

    private var limit: Int { hasSmallLimits ? SessionCall.smallBodyLimit : SessionCall.bodyLimit }

    /// Makes the call once and returns its outcome.
    func run(in session: HTTPSession) async throws(FuzzFinding) -> SessionReading.Outcome {
        do {
            let url = try HTTPURL("http://peer.test/path?query")
            switch kind {
            case .get: return try check(try await session.send(.get, url, options: options))
            case .head: return try check(try await session.send(.head, url, options: options))
            case .post:
                return try check(
                    try await session.send(.post, url, body: .text("some text"), options: options))
            case .chunkedPost:
                let body = HTTPBody.stream { SessionCall.pieces() }
                return try check(try await session.send(.post, url, body: body, options: options))
            case .leave:
                return try await session.stream(HTTPRequest(method: .get, url: url), options: options) {
                    response, body in
                    for try await piece in body {
                        if piece.isEmpty { throw FuzzFinding("a piece of the body is empty") }
                        break
                    }
                    return .left
                }
            }
        } catch let finding as FuzzFinding {
            throw finding
        } catch let error as HTTPError {
            try require(!error.isTimeout, "a clock ran out: \(error)")
            try require(error.code != .systemFailed && error.code != .sessionInvalidated, "\(error)")
            return .failed(error.code, message: error.message)
        } catch {
            throw FuzzFinding("an error that is none of the library's: \(error)")
        }
    }

    /// Returns a body of two pieces.
    private static func pieces() -> AsyncStream<[UInt8]> {
        AsyncStream { continuation in
            continuation.yield(Array("some ".utf8))
            continuation.yield(Array("text".utf8))
            continuation.finish()
        }
    }

    private func check(_ exchange: HTTPExchange) throws(FuzzFinding) -> SessionReading.Outcome {
        let head = exchange.rawHead
        try require(!head.isInformational, "an interim response is an answer")
        try FieldRules.check(head.fields)
        try require(exchange.body.count <= limit, "\(exchange.body.count) bytes were collected")
        let framing: BodyFraming
        do throws(WireError) {
            framing = try FramingDecision.response(
                kind == .head ? .headOnly : .ordinary, head: head, limits: .default
            ).framing
        } catch {
            throw FuzzFinding("the body of an answer cannot be framed: \(error)")
        }
        switch framing {
        case .none: try require(exchange.body.isEmpty, "there is a body where none may be")
        case .length(let length) where !head.fields.contains("Content-Encoding"):
            try require(
                UInt64(exchange.body.count) == length, "\(exchange.body.count) bytes came of \(length)")
        default: break
        }
        return .answered(
            head, interim: exchange.interimResponses.count, body: exchange.body,
            trailers: exchange.rawTrailers)
    }
}
