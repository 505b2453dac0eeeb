import MartletTransport
import MartletWire

/// One CONNECT request on a connection to a proxy, and its answer (RFC 9110 §9.3.6).
///
/// The head is read byte by byte, as curl does: whatever follows the head of a 2xx belongs to the tunnel, and stays in
/// the stream for whoever uses the tunnel.
struct ConnectExchange {
    /// How it ended.
    enum Outcome {
        /// The tunnel stands; what the proxy said of it, interim heads first.
        case open([ResponseHead])
        /// The proxy said something else; whether it may be asked again on this connection.
        case refused(TunnelRefusal, isReusable: Bool)
    }

    /// The connection.
    let stream: any ByteStream
    /// The server and its port, as the request line and `Host` name them.
    let authority: String
    /// What `User-Agent` says; `nil` sends none.
    let userAgent: String?
    /// What a head may look like.
    let limits: WireLimits
    /// When the tunnel must stand.
    let deadline: MonotonicTime

    /// How long a refusal's body is waited for: it is for people to read, and no reason to wait for the whole of the
    /// connect clock.
    private static let bodyPatience = Duration.seconds(1)
    /// The most that a head may have. It is read byte by byte, and says hardly anything.
    private static let headLimit = 64 * 1024

    /// Asks, and waits for the answer.
    /// - Parameter authorization: The value of `Proxy-Authorization`.
    /// - Returns: The outcome. The stream is left open.
    /// - Throws: Why there is no answer.
    func ask(authorization: String?) async throws(ProxyFault) -> Outcome {
        var machine = ClientMachine(limits: headLimits)
        machine.startRequest(method: "CONNECT")
        let request: [UInt8]
        do throws(WireError) {
            request = try encoded(authorization)
        } catch {
            throw .wire(error)
        }
        do throws(TransportError) {
            try await stream.send(request, until: deadline)
        } catch .system {
            // It may have said why before it closed.
        } catch {
            throw .lost(error)
        }
        machine.requestFinished()
        var heads = try await heads(&machine)
        guard let head = heads.popLast() else { throw .wire(WireError(.emptyResponse, at: 0)) }
        if (200...299).contains(head.status) { return .open(heads + [head]) }
        return await refusal(head, behind: heads, &machine)
    }

    private var headLimits: WireLimits {
        var limits = limits
        limits.headByteLimit = min(limits.headByteLimit, ConnectExchange.headLimit)
        return limits
    }

    private func encoded(_ authorization: String?) throws(WireError) -> [UInt8] {
        var encoder = RequestEncoder()
        try encoder.begin(method: "CONNECT", target: authority)
        try encoder.hostField(authority)
        if let userAgent { try encoder.field(name: "User-Agent", value: userAgent) }
        if let authorization { try encoder.field(name: "Proxy-Authorization", value: authorization) }
        encoder.end()
        return encoder.bytes
    }

    /// The final head, and before it the interim ones, up to their limit.
    private func heads(_ machine: inout ClientMachine) async throws(ProxyFault) -> [ResponseHead] {
        var heads: [ResponseHead] = []
        var unread: [UInt8] = []
        while true {
            let byte = try await received(atMost: 1)
            if let byte { unread += byte }
            guard byte == nil || ConnectExchange.isWorthParsing(unread) else { continue }
            do throws(WireError) {
                let step = try machine.receive(unread.span)
                switch step.event {
                case .head(let head, _): return heads + [head]
                case .informational(let head):
                    heads.append(head)
                    unread.removeFirst(step.consumed)
                case .needMoreBytes, .body, .end: break
                }
            } catch {
                throw .wire(error)
            }
            // Nothing ends in order before the head has.
            if byte == nil { throw .wire(ConnectExchange.fault(ofEnd: &machine)) }
        }
    }

    /// Whether a head that came byte by byte is worth a look: at the end of a line, where it may be over; at its beginning,
    /// where a peer that speaks something else shows itself; and now and then, so that no line is without end.
    private static func isWorthParsing(_ unread: [UInt8]) -> Bool {
        unread.last == UInt8(ascii: "\n") || unread.count <= 32 || unread.count.isMultiple(of: 1024)
    }

    private func received(atMost count: Int) async throws(ProxyFault) -> [UInt8]? {
        do throws(TransportError) {
            return try await stream.receive(atMost: count, until: deadline)
        } catch {
            throw .lost(error)
        }
    }

    private static func fault(ofEnd machine: inout ClientMachine) -> WireError {
        do throws(WireError) {
            _ = try machine.receiveEndOfStream(isClean: true)
            return WireError(.emptyResponse, at: 0)
        } catch {
            return error
        }
    }

    /// Collects the body of an answer that is no tunnel, as far as it comes soon; what is wrong with it is no matter.
    private func refusal(
        _ head: ResponseHead, behind earlier: [ResponseHead], _ machine: inout ClientMachine
    ) async -> Outcome {
        let patience = min(deadline, MonotonicTime.now().advanced(by: ConnectExchange.bodyPatience))
        var refusal = TunnelRefusal(head: head, earlier: earlier, body: [], isBodyComplete: false)
        var unread: [UInt8] = []
        do {
            while !refusal.isBodyComplete, refusal.body.count < TunnelRefusal.bodyLimit {
                let step = try machine.receive(unread.span)
                switch step.event {
                case .body(let range):
                    refusal.body += unread[range].prefix(TunnelRefusal.bodyLimit - refusal.body.count)
                    unread.removeFirst(step.consumed)
                case .end:
                    machine.finish(leftoverByteCount: unread.count - step.consumed)
                    refusal.isBodyComplete = true
                case .needMoreBytes, .informational, .head:
                    unread.removeFirst(step.consumed)
                    if let piece = try await stream.receive(atMost: 16 * 1024, until: patience) {
                        unread += piece
                    } else {
                        _ = try machine.receiveEndOfStream(isClean: true)
                        refusal.isBodyComplete = true
                    }
                }
            }
        } catch {
            // The head says what there is to know; the body is for people.
            refusal.isBodyComplete = false
        }
        return .refused(refusal, isReusable: refusal.isBodyComplete && machine.isReusable)
    }
}
