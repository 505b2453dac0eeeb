import MartletWire
import Testing

/// A response as literal bytes, read in every possible split: whole, byte by byte, in two parts at every offset, with
/// directly received payload, and with trailing junk that must stay unread. All outcomes must be equal.
struct WireScript {
    /// The state of the stream after the bytes.
    enum Ending {
        case open
        case cleanClose
        case brokenClose
    }

    let bytes: [UInt8]
    var method = "GET"
    var version = WireVersion.http11
    var limits = WireLimits.default
    var ending = Ending.open

    init(
        _ text: String, method: String = "GET", version: WireVersion = .http11, limits: WireLimits = .default,
        ending: Ending = .open
    ) {
        self.init(
            bytes: Array(text.utf8), method: method, version: version, limits: limits, ending: ending)
    }

    init(
        bytes: [UInt8], method: String = "GET", version: WireVersion = .http11, limits: WireLimits = .default,
        ending: Ending = .open
    ) {
        self.bytes = bytes
        self.method = method
        self.version = version
        self.limits = limits
        self.ending = ending
    }

    /// Reads the bytes in every split and returns their common outcome.
    func run(sourceLocation: SourceLocation = #_sourceLocation) -> WireOutcome {
        let whole = read([bytes])
        #expect(read(bytes.map { [$0] }) == whole, "byte by byte", sourceLocation: sourceLocation)
        for split in bytes.indices.dropFirst() {
            let outcome = read([Array(bytes[..<split]), Array(bytes[split...])])
            #expect(outcome == whole, "split at \(split)", sourceLocation: sourceLocation)
        }
        let direct = read(bytes.map { [$0] }, direct: true)
        #expect(direct == whole, "payload received directly", sourceLocation: sourceLocation)
        checkJunk(whole, sourceLocation)
        return whole
    }

    /// Checks that junk after a complete message stays unread and makes the connection unusable, and that junk after an
    /// error has no effect.
    private func checkJunk(_ whole: WireOutcome, _ sourceLocation: SourceLocation) {
        guard ending == .open, whole.isComplete || whole.fault != nil else { return }
        let junk = Array("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n\0junk".utf8)
        let outcome = read([bytes + junk])
        #expect(outcome.events == whole.events, "with junk behind", sourceLocation: sourceLocation)
        guard whole.isComplete else { return }
        let expected = whole.unreadByteCount + junk.count
        #expect(outcome.unreadByteCount == expected, "junk stays unread", sourceLocation: sourceLocation)
        #expect(!outcome.isReusable, "junk costs the connection", sourceLocation: sourceLocation)
    }

    /// Feeds the pieces to one machine.
    func read(_ pieces: [[UInt8]], direct: Bool = false) -> WireOutcome {
        var machine = ClientMachine(limits: limits)
        machine.startRequest(method: method, version: version)
        machine.requestFinished()
        var outcome = WireOutcome()
        var unread: [UInt8] = []
        do throws(WireError) {
            for piece in pieces {
                if outcome.isComplete {
                    unread += piece
                } else if direct, unread.isEmpty, machine.directPayloadByteCount >= UInt64(piece.count) {
                    outcome.events.add(.body(piece))
                    if case .end(let trailers) = machine.receivedDirectly(piece.count) {
                        outcome.events.add(.end(trailers))
                    }
                } else {
                    unread += piece
                    try WireScript.drain(&machine, &unread, into: &outcome)
                }
            }
            if ending != .open, !outcome.isComplete {
                let event = try machine.receiveEndOfStream(isClean: ending == .cleanClose)
                if case .end(let trailers) = event { outcome.events.add(.end(trailers)) }
            }
        } catch {
            outcome.events.add(.fault(error))
        }
        if outcome.isComplete { outcome.unreadByteCount = unread.count }
        machine.finish(leftoverByteCount: unread.count)
        outcome.isReusable = machine.isReusable
        return outcome
    }

    /// Collects all events of the unread bytes.
    private static func drain(
        _ machine: inout ClientMachine, _ unread: inout [UInt8], into outcome: inout WireOutcome
    ) throws(WireError) {
        while true {
            let received = try machine.receive(unread.span)
            let taken = Array(unread[..<received.consumed])
            unread.removeFirst(received.consumed)
            switch received.event {
            case .needMoreBytes: return
            case .informational(let head): outcome.events.add(.informational(head))
            case .head(let head, let framing): outcome.events.add(.head(head, framing))
            case .body(let range): outcome.events.add(.body(Array(taken[range])))
            case .end(let trailers):
                outcome.events.add(.end(trailers))
                return
            }
        }
    }
}
