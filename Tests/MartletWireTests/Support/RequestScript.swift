import MartletWire
import Testing

/// A request as literal bytes that the server machine reads in every possible split.
struct RequestScript {
    let bytes: [UInt8]
    var limits = WireLimits.default

    init(_ text: String, limits: WireLimits = .default) {
        bytes = Array(text.utf8)
        self.limits = limits
    }

    init(bytes: [UInt8], limits: WireLimits = .default) {
        self.bytes = bytes
        self.limits = limits
    }

    /// Reads the bytes in every split and returns their common outcome.
    func run(sourceLocation: SourceLocation = #_sourceLocation) -> WireOutcome {
        let whole = read([bytes])
        #expect(read(bytes.map { [$0] }) == whole, "byte by byte", sourceLocation: sourceLocation)
        for split in bytes.indices.dropFirst() {
            let outcome = read([Array(bytes[..<split]), Array(bytes[split...])])
            #expect(outcome == whole, "split at \(split)", sourceLocation: sourceLocation)
        }
        if whole.isComplete || whole.fault != nil {
            let junk = Array("GET / HTTP/1.1\r\n\r\n\0junk".utf8)
            let outcome = read([bytes + junk])
            #expect(outcome.events == whole.events, "with junk behind", sourceLocation: sourceLocation)
            if whole.isComplete {
                #expect(outcome.unreadByteCount == junk.count, "junk unread", sourceLocation: sourceLocation)
            }
        }
        return whole
    }

    private func read(_ pieces: [[UInt8]]) -> WireOutcome {
        var machine = ServerMachine(limits: limits)
        var outcome = WireOutcome()
        var unread: [UInt8] = []
        do throws(WireError) {
            for piece in pieces {
                unread += piece
                if outcome.isComplete { continue }
                try RequestScript.drain(&machine, &unread, into: &outcome)
            }
        } catch {
            outcome.events.add(.fault(error))
        }
        if outcome.isComplete { outcome.unreadByteCount = unread.count }
        outcome.isReusable = machine.persists
        return outcome
    }

    private static func drain(
        _ machine: inout ServerMachine, _ unread: inout [UInt8], into outcome: inout WireOutcome
    ) throws(WireError) {
        while true {
            let received = try machine.receive(unread.span)
            let taken = Array(unread[..<received.consumed])
            unread.removeFirst(received.consumed)
            switch received.event {
            case .needMoreBytes: return
            case .head(let head, let framing): outcome.events.add(.request(head, framing))
            case .body(let range): outcome.events.add(.body(Array(taken[range])))
            case .end(let trailers):
                outcome.events.add(.end(trailers))
                return
            }
        }
    }
}
