import MartletContent
import MartletCore
import MartletDiagnostics
import MartletStreams
import MartletTesting
import MartletWire
import Testing

/// A misbehaving server, and the required outcome of a request to it.
///
/// Content that an attacker would want to be delivered is spelled `EVIL`.
struct HostilePeer: Sendable, CustomTestStringConvertible {
    /// The peer's behavior, as a sentence.
    let name: String
    /// The script of its first connection. Later connections are honest.
    let script: [ScriptStep]
    /// The request to send.
    let request: HostileRequest
    /// The required outcome.
    let fate: HostileOutcome
    /// The routes over which the peer is tested.
    var routes = HostileRoute.all
    /// The maximum number of bytes that the client may read; `nil` if the peer sends little.
    var takenLimit: UInt64?

    /// Whether the peer keeps a thread busy on either side until a timeout expires. These peers run one at a time.
    var isRestless: Bool { isWarmedUp && takenLimit != nil }

    /// Whether an honest exchange comes first on the connection, so that connecting does not count towards the
    /// timeouts.
    var isWarmedUp: Bool {
        if case .timedOut(.total, _) = fate { true } else { false }
    }

    /// Creates a peer with a script of its own.
    init(
        _ name: String, script: [ScriptStep], request: HostileRequest = HostileRequest(),
        routes: [HostileRoute] = HostileRoute.all, _ fate: HostileOutcome
    ) {
        self.name = name
        self.script = script
        self.request = request
        self.routes = routes
        self.fate = fate
    }

    /// Creates a peer that answers one request with bytes, and then closes the connection or waits for the client to do
    /// so.
    init(
        _ name: String, _ bytes: [UInt8], _ fate: HostileOutcome, closes: Bool = false,
        method: HTTPRequest.Method = .get
    ) {
        var steps: [ScriptStep] = [.expectRequestHead, .send(bytes)]
        if fate.isKept { steps += [.expectRequestHead, .send(HostileScene.good)] }
        steps.append(closes ? .close : .awaitClose)
        self.init(name, script: steps, request: HostileRequest(method: method), fate)
    }

    /// Creates the same peer from text.
    init(
        _ name: String, _ text: String, _ fate: HostileOutcome, closes: Bool = false,
        method: HTTPRequest.Method = .get
    ) {
        self.init(name, Array(text.utf8), fate, closes: closes, method: method)
    }

    /// Returns a peer with a valid status line and these field lines; the fields begin at byte 17.
    static func fields(
        _ name: String, _ lines: String, body: String = "EVIL", _ fate: HostileOutcome, closes: Bool = false
    ) -> HostilePeer {
        HostilePeer(name, "HTTP/1.1 200 OK\r\n\(lines)\r\n\r\n\(body)", fate, closes: closes)
    }

    /// Returns a peer whose head announces a chunked body, which begins at byte 47.
    static func chunked(
        _ name: String, _ body: String, _ fate: HostileOutcome, closes: Bool = false
    ) -> HostilePeer {
        .fields(name, "Transfer-Encoding: chunked", body: body, fate, closes: closes)
    }

    /// Returns a peer that never stops sending. The client may read the limit and the bytes in transit.
    static func flood(
        _ name: String, _ start: [UInt8], endlessly bytes: [UInt8], taking limit: UInt64,
        request: HostileRequest = HostileRequest(), _ fate: HostileOutcome
    ) -> HostilePeer {
        var peer = HostilePeer(
            name, script: [.expectRequestHead, .send(start), .sendEndlessly(bytes)], request: request, fate)
        peer.takenLimit = limit
        return peer
    }

    /// Returns the same peer for text.
    static func flood(
        _ name: String, _ start: String, endlessly text: String, taking limit: UInt64,
        request: HostileRequest = HostileRequest(), _ fate: HostileOutcome
    ) -> HostilePeer {
        .flood(
            name, Array(start.utf8), endlessly: Array(text.utf8), taking: limit, request: request, fate)
    }

    /// Returns a peer that sends data and then nothing until the client gives up.
    static func silent(
        _ name: String, after text: String, _ timeout: HTTPError.Timeout, _ phase: HTTPError.Phase
    ) -> HostilePeer {
        let steps: [ScriptStep] = [.expectRequestHead, .send(text), .awaitClose]
        return HostilePeer(
            name, script: steps,
            request: .within(timeout, timeout == .total ? .milliseconds(1500) : .milliseconds(250)),
            .timedOut(timeout, phase))
    }

    var testDescription: String { name }

    /// All hostile peers.
    static let all =
        statusLines + framings + chunks + heads + interims + truncations + poisons + floods + drips + silences
        + resets + codings + handshakes
}
