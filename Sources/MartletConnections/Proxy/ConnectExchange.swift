package import MartletTransport
package import MartletWire

/// One CONNECT request on a connection to a proxy, and its answer (RFC 9110 §9.3.6).
///
/// The head is read byte by byte, as curl does: whatever follows the head of a 2xx belongs to the tunnel, and stays in
/// the stream for whoever uses the tunnel.
struct ConnectExchange {
    /// How it ended.
    package enum Outcome {
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

/// A proxy's answer to CONNECT that was no tunnel: its own words, never to be taken for the server's.
package struct TunnelRefusal: Sendable {
    /// The head.
    package var head: ResponseHead
    /// The heads that came before it: interim ones, and those of the answers after which the proxy was asked again.
    package var earlier: [ResponseHead]
    /// What came of the body, at most ``bodyLimit`` bytes.
    package var body: [UInt8]
    /// Whether that is all of it.
    package var isBodyComplete: Bool

    /// The most that is kept of a body: 64 KiB, far above any page of an error. It stops a proxy from filling the memory.
    package static let bodyLimit = 64 * 1024

    /// A refusal.
    package init(head: ResponseHead, earlier: [ResponseHead] = [], body: [UInt8], isBodyComplete: Bool) {
        self.head = head
        self.earlier = earlier
        self.body = body
        self.isBodyComplete = isBodyComplete
    }
}

/// Why a proxy that was reached did not open a way to the server.
package enum ProxyFault: Error, Sendable, CustomStringConvertible {
    /// An HTTP proxy answered CONNECT with something else than 2xx.
    case refused(TunnelRefusal)
    /// What an HTTP proxy said is not HTTP, breaks its rules, or ended too early.
    case wire(WireError)
    /// A SOCKS proxy refused, or broke the rules.
    case socks(Socks5Fault)
    /// The connection to the proxy broke before the tunnel stood.
    case lost(TransportError)

    /// Whether the connection ended or failed before a byte of an answer.
    var isConnectionLoss: Bool {
        switch self {
        case .lost(.system), .lost(.closed), .lost(.tls): true
        case .wire(let error): error.code == .emptyResponse
        default: false
        }
    }

    /// What the proxy did. Nothing that it sent is repeated but the status.
    package var description: String {
        switch self {
        case .refused(let refusal) where refusal.head.status == 407:
            "it wants credentials, or others than it was given: it answered CONNECT with 407"
        case .refused(let refusal): "it answered CONNECT with \(refusal.head.status)"
        case .wire(let error): "its answer to CONNECT cannot be used: \(error)"
        case .socks(let fault): fault.description
        case .lost(.system(let error)): "the connection to it broke before the tunnel stood: \(error)"
        case .lost(.tls(let error)): "the connection to it broke before the tunnel stood: \(error)"
        case .lost: "the connection to it ended before the tunnel stood"
        }
    }
}

/// Runs a ``Socks5Machine`` on a connection to a proxy.
struct Socks5Handshake {
    let machine: Socks5Machine
    /// When the tunnel must stand.
    let deadline: MonotonicTime

    /// Exchanges bytes until the tunnel stands; not a byte of it is read. The stream is left open.
    func run(on stream: any ByteStream) async throws(ProxyFault) {
        var machine = machine
        var effects = machine.start()
        while true {
            let bytes: [UInt8]?
            do throws(TransportError) {
                try await stream.send(effects.send, until: deadline)
                if machine.isEstablished { return }
                bytes = try await stream.receive(atMost: machine.wantedByteCount, until: deadline)
            } catch {
                throw .lost(error)
            }
            guard let bytes else {
                guard let fault = machine.receiveEndOfStream() else { return }
                throw .socks(fault)
            }
            do throws(Socks5Fault) {
                effects = try machine.receive(bytes)
            } catch {
                throw .socks(error)
            }
        }
    }
}
