import MartletTransport
import MartletWire

/// The opening of a connection through a proxy: the connection to the proxy, its handshake, and TLS with the server
/// inside the tunnel. One deadline covers all steps. Cancelling the task closes the connection.
struct ProxyDialer {
    let dialer: Dialer
    let proxy: ProxyServer
    /// The server; or the proxy itself, if it forwards the requests.
    let destination: Destination
    let limits: WireLimits
    let deadline: MonotonicTime
    private let start = MonotonicTime.now()
    /// The maximum number of addresses of a server that are tried through a SOCKS proxy, one after the other.
    private static let addressLimit = 4

    struct Tunnel {
        var connected: Dialer.Connected
        /// The heads of the proxy's responses to CONNECT; the last one opened the tunnel.
        var heads: [ResponseHead] = []
    }

    func run() async throws(ExchangeError) -> Tunnel {
        let tunnel: Tunnel
        if proxy.forwards(isSecure: destination.isSecure) {
            tunnel = Tunnel(connected: try await reachProxy())
        } else if case .socks5(let names) = proxy.kind {
            tunnel = try await tunnelBySocks(names)
        } else {
            tunnel = try await tunnelByConnect()
        }
        // Cancelling may have permanently interrupted the socket just after everything had succeeded.
        guard !Task.isCancelled else {
            tunnel.connected.stream.close()
            throw failure(.lost(.interrupted))
        }
        return tunnel
    }

    // MARK: The proxy

    private func reachProxy() async throws(ExchangeError) -> Dialer.Connected {
        do throws(DialError) {
            var connected = try await dialer.dial(proxy.destination, as: proxy, until: deadline)
            connected.timings.start = start
            return connected
        } catch { throw ExchangeError(error, proxy: proxy) }
    }

    /// - Parameter connected: The connection to the proxy; `nil` without one.
    private func failure(_ handshakeError: ProxyHandshakeError, on connected: Dialer.Connected? = nil) -> ExchangeError
    {
        let cause: ExchangeError.Cause =
            switch handshakeError {
            case .lost(.timedOut): .timedOut(.connect)
            case .lost(.interrupted): .cancelled
            default: .proxy(handshakeError)
            }
        var error = ExchangeError(
            cause: cause, phase: .tunneling, wasSent: false, waited: MonotonicTime.now().since(start), proxy: proxy)
        error.details.reached = connected?.reached
        return error
    }

    // MARK: CONNECT

    private func tunnelByConnect() async throws(ExchangeError) -> Tunnel {
        let place = dialer.settings.redirected(host: destination.host, port: destination.port)
        let isAddress = place.host.utf8.contains(UInt8(ascii: ":"))
        let authority = "\(isAddress ? "[\(place.host)]" : place.host):\(place.port)"
        let request = ProxyAuthenticationRequest(proxy: proxy, method: "CONNECT", target: authority)
        let authenticator = dialer.settings.proxyAuthenticator
        var authorization = authenticator?.preemptiveValue(for: request)
        var hasSentCredentials = false
        var heads: [ResponseHead] = []
        var connected = try await reachProxy()
        /// Whether the connection carried a response before, and so may have been closed since.
        var isReused = false
        while true {
            let exchange = ConnectHandshake(
                stream: connected.stream, authority: authority, userAgent: dialer.settings.proxyUserAgent,
                limits: limits, deadline: deadline)
            let outcome: ConnectHandshake.Outcome
            do throws(ProxyHandshakeError) {
                outcome = try await interruptibly(connected.stream) { () async throws(ProxyHandshakeError) in
                    try await exchange.ask(authorization: authorization)
                }
            } catch {
                connected.stream.close()
                guard isReused, error.isConnectionLoss, !Task.isCancelled else { throw failure(error, on: connected) }
                isReused = false
                connected = try await reachProxy()
                continue
            }
            switch outcome {
            case .open(let last):
                heads += last
                return Tunnel(connected: try await secured(connected, after: heads), heads: heads)
            case .rejected(var rejection, let isReusable):
                guard rejection.head.status == 407, !hasSentCredentials, !Task.isCancelled,
                    let value = authenticator?.value(
                        answering: rejection.head.fields.values(of: "Proxy-Authenticate"), rejected: authorization,
                        for: request)
                else {
                    connected.stream.close()
                    rejection.earlier = heads + rejection.earlier
                    throw failure(Task.isCancelled ? .lost(.interrupted) : .rejected(rejection), on: connected)
                }
                hasSentCredentials = true
                heads += rejection.earlier + [rejection.head]
                authorization = value
                isReused = isReusable
                if !isReusable {
                    connected.stream.close()
                    connected = try await reachProxy()
                }
            }
        }
    }

    // MARK: SOCKS

    private func tunnelBySocks(_ names: ProxyNameResolution) async throws(ExchangeError) -> Tunnel {
        var targets = try await targets(names)[...]
        while true {
            guard let target = targets.popFirst() else {
                // A successful resolver returns at least one address, but it may not be of an allowed family.
                throw unresolved(destination.host, "the name has no addresses of an allowed family")
            }
            let machine: Socks5Machine
            do throws(Socks5Error) { machine = try Socks5Machine(target: target, credentials: proxy.credentials) } catch
            { throw failure(.socks(error)) }
            let connected = try await reachProxy()
            do throws(ProxyHandshakeError) {
                try await interruptibly(connected.stream) { () async throws(ProxyHandshakeError) in
                    try await performHandshake(machine, connected.stream)
                }
            } catch {
                connected.stream.close()
                if case .socks(let handshakeError) = error, handshakeError.isAboutAddress, !targets.isEmpty,
                    !Task.isCancelled
                {
                    continue
                }
                throw failure(error, on: connected)
            }
            return Tunnel(connected: try await secured(connected))
        }
    }

    /// Runs a machine until the tunnel is established; no byte of the tunnel is read. The stream is left open.
    private func performHandshake(_ machine: consuming Socks5Machine, _ stream: any ByteStream)
        async throws(ProxyHandshakeError)
    {
        var request = machine.start()
        while true {
            let bytes: [UInt8]?
            do throws(TransportError) {
                try await stream.send(request, until: deadline)
                if machine.isEstablished { return }
                bytes = try await stream.receive(atMost: machine.wantedByteCount, until: deadline)
            } catch { throw .lost(error) }
            guard let bytes else {
                guard let handshakeError = machine.receiveEndOfStream() else { return }
                throw .socks(handshakeError)
            }
            do throws(Socks5Error) { request = try machine.receive(bytes) } catch { throw .socks(error) }
        }
    }

    /// Returns the targets to request from the proxy, one after the other.
    private func targets(_ names: ProxyNameResolution) async throws(ExchangeError) -> [Socks5Machine.Target] {
        let place = dialer.settings.redirected(host: destination.host, port: destination.port)
        if let address = SocketAddress(literal: place.host, port: place.port) { return [.address(address)] }
        guard let port = UInt16(exactly: place.port) else {
            throw unresolved(place.host, "\(place.port) is not a port number")
        }
        if names == .resolvedRemotely { return [.name(place.host, port: port)] }
        do throws(DialError) {
            let addresses = try await dialer.addresses(of: destination, until: deadline)
            return addresses.prefix(ProxyDialer.addressLimit).map { .address($0) }
        } catch { throw ExchangeError(error) }
    }

    private func unresolved(_ host: String, _ message: String) -> ExchangeError {
        let error = ResolutionError(host: host, message: message)
        return ExchangeError(cause: .transport(.resolution(error)), phase: .resolving, wasSent: false)
    }

    // MARK: The tunnel

    /// Returns the tunnel, with TLS in it if the destination is secure.
    /// - Parameter heads: The proxy's responses to CONNECT.
    private func secured(_ tunnel: Dialer.Connected, after heads: [ResponseHead] = []) async throws(ExchangeError)
        -> Dialer.Connected
    {
        var connected = tunnel
        connected.timings.tunneled = MonotonicTime.now()
        connected.timings.secured = nil
        guard destination.isSecure else { return connected }
        do throws(DialError) {
            connected.stream = try await interruptibly(tunnel.stream) { () async throws(DialError) in
                try await dialer.secure(tunnel.stream, to: destination, through: proxy, until: deadline, since: start)
            }
        } catch {
            var failure = ExchangeError(error)
            failure.details.reached = connected.reached
            failure.details.tunnelHeads = heads
            throw failure
        }
        connected.timings.secured = MonotonicTime.now()
        return connected
    }

    /// Runs a step on a stream; cancelling the task interrupts it.
    private func interruptibly<Value: Sendable, Failure: Error>(
        _ stream: any ByteStream, _ step: () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let result: Result<Value, Failure> = await withTaskCancellationHandler {
            do throws(Failure) { return .success(try await step()) } catch { return .failure(error) }
        } onCancel: {
            stream.interrupt()
        }
        return try result.get()
    }
}

extension Dialer.Connected {
    /// The properties of the connection, for an error.
    fileprivate var reached: ReachedConnection { ReachedConnection(information: stream.information, timings: timings) }
}
