import MartletContent
import MartletCore
import MartletDiagnostics
import MartletStreams
import MartletTesting
import MartletWire
import Testing

/// A server that does what no honest server does, and what must become of a request to it.
///
/// What an attacker would like to have delivered is spelled `EVIL` throughout.
struct HostilePeer: Sendable, CustomTestStringConvertible {
    /// What the peer does, as a sentence.
    let name: String
    /// What it does on its first connection, step by step; the ones after it are honest.
    let script: [ScriptStep]
    /// What is asked of it.
    let request: HostileRequest
    /// What must become of that.
    let fate: HostileFate
    /// The ways on which it is met.
    var routes = HostileRoute.all
    /// The most bytes that the client may take from it before it has had enough; `nil` where they are few anyway.
    var takenLimit: UInt64?

    /// Whether it keeps a thread busy on either side until a timeout runs out: one at a time of those.
    var isRestless: Bool { isWarmedUp && takenLimit != nil }

    /// Whether an honest exchange comes first on the connection, so that opening it costs the clocks nothing.
    var isWarmedUp: Bool {
        if case .timedOut(.total, _) = fate { true } else { false }
    }

    /// A peer that plays a script of its own.
    init(
        _ name: String, script: [ScriptStep], request: HostileRequest = HostileRequest(),
        routes: [HostileRoute] = HostileRoute.all, _ fate: HostileFate
    ) {
        self.name = name
        self.script = script
        self.request = request
        self.routes = routes
        self.fate = fate
    }

    /// A peer that answers one request with bytes, and then ends the connection or waits for the client to do so.
    init(
        _ name: String, _ bytes: [UInt8], _ fate: HostileFate, closes: Bool = false,
        method: HTTPRequest.Method = .get
    ) {
        var steps: [ScriptStep] = [.expectRequestHead, .send(bytes)]
        if fate.isKept { steps += [.expectRequestHead, .send(HostileScene.good)] }
        steps.append(closes ? .close : .awaitClose)
        self.init(name, script: steps, request: HostileRequest(method: method), fate)
    }

    /// The same with text.
    init(
        _ name: String, _ text: String, _ fate: HostileFate, closes: Bool = false,
        method: HTTPRequest.Method = .get
    ) {
        self.init(name, Array(text.utf8), fate, closes: closes, method: method)
    }

    /// A peer whose status line is in order and whose fields are these lines; the fields begin at byte 17.
    static func fields(
        _ name: String, _ lines: String, body: String = "EVIL", _ fate: HostileFate, closes: Bool = false
    ) -> HostilePeer {
        HostilePeer(name, "HTTP/1.1 200 OK\r\n\(lines)\r\n\r\n\(body)", fate, closes: closes)
    }

    /// A peer whose head announces a chunked body, which begins at byte 47.
    static func chunked(
        _ name: String, _ body: String, _ fate: HostileFate, closes: Bool = false
    ) -> HostilePeer {
        .fields(name, "Transfer-Encoding: chunked", body: body, fate, closes: closes)
    }

    /// A peer that never stops sending; of which no more than a limit may be taken, and a little more that is on its way.
    static func flood(
        _ name: String, _ start: [UInt8], endlessly bytes: [UInt8], taking limit: UInt64,
        request: HostileRequest = HostileRequest(), _ fate: HostileFate
    ) -> HostilePeer {
        // Pieces of some size, so that the flood is one of bytes and not of calls.
        let piece = Array(repeatElement(bytes, count: max(1, 8192 / bytes.count)).joined())
        var peer = HostilePeer(
            name, script: [.expectRequestHead, .send(start), .sendEndlessly(piece)], request: request, fate)
        peer.takenLimit = limit
        return peer
    }

    /// The same with text.
    static func flood(
        _ name: String, _ start: String, endlessly text: String, taking limit: UInt64,
        request: HostileRequest = HostileRequest(), _ fate: HostileFate
    ) -> HostilePeer {
        .flood(
            name, Array(start.utf8), endlessly: Array(text.utf8), taking: limit, request: request, fate)
    }

    /// A peer that says something and then nothing more, until the client has had enough.
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

    /// All there are.
    static let all =
        statusLines + framings + chunks + heads + interims + truncations + poisons + floods + drips + silences
        + resets + codings + handshakes
}
