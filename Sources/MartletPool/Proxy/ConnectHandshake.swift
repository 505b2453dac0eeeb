package import MartletTransport
package import MartletWire

/// One CONNECT request on a connection to a proxy, and its response (RFC 9110 §9.3.6). The head is read byte by byte,
/// as curl does: the bytes after the head of a 2xx belong to the tunnel, and stay in the stream.
struct ConnectHandshake {
    enum Outcome {
        /// The tunnel is established; the heads of the proxy, interim ones first.
        case open([ResponseHead])
        /// The proxy rejected the request. If `isReusable`, the request can be repeated on this connection.
        case rejected(TunnelRejection, isReusable: Bool)
    }

    let stream: any ByteStream
    /// The server and its port, as in the request line and `Host`.
    let authority: String
    /// The value of `User-Agent`; `nil` sends none.
    let userAgent: String?
    let limits: WireLimits
    /// The time by which the tunnel must be established.
    let deadline: MonotonicTime
    /// The maximum wait for the body of a rejection, which is only informative.
    private static let bodyTimeout = Duration.seconds(1)
    /// The maximum size of a head in bytes. Heads are short, and are read byte by byte.
    private static let headLimit = 64 * 1024

    /// Sends the request, and waits for the response.
    /// - Parameter authorization: The value of `Proxy-Authorization`.
    /// - Returns: The outcome. The stream is left open.
    /// - Throws: The reason why no valid response arrived.
    func ask(authorization: String?) async throws(ProxyHandshakeError) -> Outcome {
        var headLimits = limits
        headLimits.headByteLimit = min(limits.headByteLimit, ConnectHandshake.headLimit)
        var machine = ClientMachine(limits: headLimits)
        machine.startRequest(method: "CONNECT")
        let request: [UInt8]
        do throws(WireError) { request = try encoded(authorization) } catch { throw .wire(error) }
        do throws(TransportError) { try await stream.send(request, until: deadline) } catch .system {
            // The proxy may have sent the reason before it closed.
        } catch { throw .lost(error) }
        machine.requestFinished()
        var heads = try await heads(&machine)
        guard let head = heads.popLast() else { throw .wire(WireError(.emptyResponse, at: 0)) }
        if (200...299).contains(head.status) { return .open(heads + [head]) }
        return await rejection(head, after: heads, &machine)
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

    /// Reads the interim heads, up to their limit, and the final head after them.
    private func heads(_ machine: inout ClientMachine) async throws(ProxyHandshakeError) -> [ResponseHead] {
        var heads: [ResponseHead] = []
        var unread: [UInt8] = []
        while true {
            let byte: [UInt8]?
            do throws(TransportError) { byte = try await stream.receive(atMost: 1, until: deadline) } catch {
                throw .lost(error)
            }
            if let byte { unread += byte }
            guard byte == nil || ConnectHandshake.isWorthParsing(unread) else { continue }
            do throws(WireError) {
                let step = try machine.receive(unread.span)
                switch step.event {
                case .head(let head, _): return heads + [head]
                case .informational(let head):
                    heads.append(head)
                    unread.removeFirst(step.consumed)
                case .needMoreBytes, .body, .end: break
                }
                if byte == nil {
                    _ = try machine.receiveEndOfStream(isClean: true)
                    // A stream that ends before the head is complete is an error.
                    throw WireError(.emptyResponse, at: 0)
                }
            } catch { throw .wire(error) }
        }
    }

    /// Whether to parse a head that arrives byte by byte: at the end of a line, where it may be complete; at its start,
    /// to detect another protocol; and every 1,024 bytes, to enforce the limit of a line.
    private static func isWorthParsing(_ unread: [UInt8]) -> Bool {
        unread.last == UInt8(ascii: "\n") || unread.count <= 32 || unread.count.isMultiple(of: 1024)
    }

    /// Collects the part of a rejection's body that arrives soon; errors in it are ignored.
    private func rejection(_ head: ResponseHead, after earlier: [ResponseHead], _ machine: inout ClientMachine) async
        -> Outcome
    {
        let bodyDeadline = min(deadline, MonotonicTime.now().advanced(by: ConnectHandshake.bodyTimeout))
        var rejection = TunnelRejection(head: head, earlier: earlier, body: [], isBodyComplete: false)
        var unread: [UInt8] = []
        do {
            while !rejection.isBodyComplete, rejection.body.count < TunnelRejection.bodyLimit {
                let step = try machine.receive(unread.span)
                switch step.event {
                case .body(let range):
                    rejection.body += unread[range].prefix(TunnelRejection.bodyLimit - rejection.body.count)
                    unread.removeFirst(step.consumed)
                case .end:
                    machine.finish(leftoverByteCount: unread.count - step.consumed)
                    rejection.isBodyComplete = true
                case .needMoreBytes, .informational, .head:
                    unread.removeFirst(step.consumed)
                    if let piece = try await stream.receive(atMost: 16 * 1024, until: bodyDeadline) {
                        unread += piece
                    } else {
                        _ = try machine.receiveEndOfStream(isClean: true)
                        rejection.isBodyComplete = true
                    }
                }
            }
        } catch {
            // The body is only informative.
            rejection.isBodyComplete = false
        }
        return .rejected(rejection, isReusable: rejection.isBodyComplete && machine.isReusable)
    }
}

/// A proxy's response to CONNECT that opened no tunnel. It is never treated as the server's response.
package struct TunnelRejection: Sendable {
    package var head: ResponseHead
    /// The heads received before ``head``: interim ones, and those of responses after which the request was repeated.
    package var earlier: [ResponseHead] = []
    /// The received part of the body, at most ``bodyLimit`` bytes.
    package var body: [UInt8]
    /// Whether ``body`` is complete.
    package var isBodyComplete: Bool
    /// The maximum size of a body: 64 KiB, far above any error page. It prevents a proxy from filling the memory.
    package static let bodyLimit = 64 * 1024
}

/// The reason why a reachable proxy did not connect to the server.
package enum ProxyHandshakeError: Error, Sendable, CustomStringConvertible {
    /// An HTTP proxy responded to CONNECT with a status other than 2xx.
    case rejected(TunnelRejection)
    /// The response of an HTTP proxy is not HTTP, breaks its rules, or ended too early.
    case wire(WireError)
    /// A SOCKS proxy rejected the request, or violated the protocol.
    case socks(Socks5Error)
    /// The connection to the proxy was lost before the tunnel was established.
    case lost(TransportError)

    /// Whether the connection was lost. The proxy may have closed it after a response to an earlier request.
    var isConnectionLoss: Bool {
        switch self {
        case .lost(.system), .lost(.closed), .lost(.tls): true
        case .wire(let error): error.code == .emptyResponse
        default: false
        }
    }

    /// The failure as text, with only the status of the proxy's response.
    package var description: String {
        switch self {
        case .rejected(let rejection) where rejection.head.status == 407:
            "authentication is required (407 to CONNECT); check the proxy user and password"
        case .rejected(let rejection): "the response to CONNECT has the status \(rejection.head.status)"
        case .wire(let error): "the response to CONNECT is invalid: \(error)"
        case .socks(let handshakeError): handshakeError.description
        case .lost(.system(let error)): "the connection was lost before the tunnel was established: \(error)"
        case .lost(.tls(let error)): "the connection was lost before the tunnel was established: \(error)"
        case .lost: "the connection ended before the tunnel was established"
        }
    }
}
