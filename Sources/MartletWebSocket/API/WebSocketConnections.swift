public import MartletCore

/// The rules for connecting again after a WebSocket connection has ended.
public struct WebSocketReconnectionPolicy: Sendable {
    /// The maximum delay before the first reconnection; 1 s by default. It doubles with each failure, and the delay is
    /// a random part of it, so that clients which lost a server together return one by one.
    public var initialDelay = Duration.seconds(1)
    /// The maximum delay before a reconnection; 60 s by default. A longer `Retry-After` of the server is respected, up
    /// to an hour.
    public var maximumDelay = Duration.seconds(60)
    /// The time after which a connection counts as stable: its end is followed by a short delay again. A connection that
    /// ends earlier counts as a failure. 10 s by default.
    public var stableTime = Duration.seconds(10)
    /// The number of consecutive failures that are followed by another attempt; the error of the next one is thrown. 10
    /// by default, `nil` for no limit.
    public var failureLimit: Int? = 10
    /// Whether a close code of the server is followed by a reconnection: all but 1000 by default.
    public var reconnects: @Sendable (WebSocketCloseCode) -> Bool = { $0 != .normalClosure }

    /// Creates the default rules.
    public init() {}

    /// Creates rules that a closure sets.
    public init(_ change: (inout WebSocketReconnectionPolicy) -> Void) { change(&self) }
}

/// A machine that decides when to open the next connection.
package struct WebSocketReconnectionMachine: Sendable {
    /// The next step.
    package enum Step: Hashable, Sendable {
        /// Connect after a delay.
        case connect(after: Duration)
        /// End the sequence without an error.
        case finish
        /// End the sequence with the error.
        case fail
    }

    private let policy: WebSocketReconnectionPolicy
    private var failureCount = 0

    /// Creates the machine of a sequence without a connection.
    package init(_ policy: WebSocketReconnectionPolicy) { self.policy = policy }

    /// Handles the end of a connection.
    /// - Parameters:
    ///   - code: The code of the server; `nil` if this client has closed the connection.
    ///   - lifetime: The time since the opening handshake.
    ///   - random: A random number from 0 to 1.
    package mutating func ended(_ code: WebSocketCloseCode?, after lifetime: Duration, random: Double) -> Step {
        guard let code, policy.reconnects(code) else { return .finish }
        guard lifetime < policy.stableTime else {
            // Not a failure: the delay is that of the first reconnection.
            failureCount = 0
            let (initial, maximum) = (policy.initialDelay.bounded, policy.maximumDelay.bounded)
            return .connect(after: RetryRule.fullJitter(initial, upTo: maximum, retry: 1, random: random))
        }
        return next(retryAfter: nil, random)
    }

    /// Handles a failure to connect.
    /// - Parameters:
    ///   - isTransient: Whether a retry could succeed.
    ///   - retryAfter: The delay that the server asks for.
    package mutating func failed(isTransient: Bool, retryAfter: Duration?, random: Double) -> Step {
        isTransient ? next(retryAfter: retryAfter, random) : .fail
    }

    private mutating func next(retryAfter: Duration?, _ random: Double) -> Step {
        failureCount += 1
        if let limit = policy.failureLimit, failureCount > max(0, limit) { return .fail }
        let delay = RetryRule.fullJitter(
            policy.initialDelay.bounded, upTo: policy.maximumDelay.bounded, retry: failureCount, random: random)
        return .connect(after: max(delay, min(retryAfter ?? .zero, .seconds(3600))))
    }
}

/// The WebSocket connections to a URL, one after the other: when one ends, the next one is opened after a delay.
///
/// ```swift
/// for try await socket in session.webSocketConnections(to: "wss://example.org/feed") {
///     try await socket.send("subscribe")
///     for try await message in socket.messages { show(message) }
/// }
/// ```
///
/// When such a connection is lost, its messages end without an error, because the loop continues with the next one;
/// sending throws. Requesting the next connection closes the current one, if it is open. The sequence ends after a close
/// code that ``WebSocketReconnectionPolicy/reconnects`` excludes, and after ``WebSocket/close(code:reason:)``; so does
/// the loop that breaks.
public struct WebSocketConnections: AsyncSequence, Sendable {
    let session: HTTPSession
    let target: HTTPTargetForm
    let headers: HTTPHeaders
    let options: WebSocketOptions
    let policy: WebSocketReconnectionPolicy

    /// One pass over the connections.
    public struct Iterator: AsyncIteratorProtocol {
        private let sequence: WebSocketConnections
        private var machine: WebSocketReconnectionMachine
        private var current: (socket: WebSocket, start: ContinuousClock.Instant)?
        private var isOver = false

        fileprivate init(_ sequence: WebSocketConnections) {
            self.sequence = sequence
            machine = WebSocketReconnectionMachine(sequence.policy)
        }

        /// Waits for the end of the delay, and opens the next connection; `nil` at the end.
        /// - Throws: The last `HTTPError` after too many failures, or for one that a retry cannot fix, such as a 403;
        ///   the ``WebSocketError`` of the last connection after too many of them ended early; `CancellationError`.
        public mutating func next() async throws -> WebSocket? {
            if isOver { return nil }
            isOver = true
            if let (socket, start) = current.take() {
                let end = socket.connection.end
                if end == nil { socket.cancel() }
                var code: WebSocketCloseCode? = .abnormalClosure
                if case .closed(let given, _, let byServer) = end { code = byServer ? given : nil }
                let lifetime = ContinuousClock.now - start
                guard try await wait(machine.ended(code, after: lifetime, random: .random(in: 0...1)), end?.error)
                else { return nil }
            }
            while true {
                let (session, options) = (sequence.session, sequence.options)
                do {
                    let socket = try await session.openWebSocket(
                        sequence.target, sequence.headers, options, endsQuietly: true)
                    (current, isOver) = ((socket, .now), false)
                    return socket
                } catch let error as HTTPError {
                    let isTransient =
                        error.code == .unacceptableStatus
                        ? [429, 500, 502, 503, 504].contains(error.status) : error.isTransient || error.isTimeout
                    let step = machine.failed(
                        isTransient: isTransient, retryAfter: error.retryAfter, random: .random(in: 0...1))
                    guard try await wait(step, error) else { return nil }
                }
            }
        }

        /// Waits for the end of the delay, and opens the next connection; `nil` at the end.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> WebSocket? {
            try await next()
        }

        /// Waits as the machine decides.
        /// - Returns: Whether to connect.
        private func wait(_ step: WebSocketReconnectionMachine.Step, _ error: (any Error)?) async throws -> Bool {
            switch step {
            case .connect(let delay):
                try await sequence.options.sleep(.reconnection, delay)
                return true
            case .finish: return false
            case .fail: throw error ?? WebSocketError.connectionLost("it ended too early")
            }
        }
    }

    /// Returns a pass, which connects when its first connection is requested.
    public func makeAsyncIterator() -> Iterator { Iterator(self) }
}

extension HTTPSession {
    /// Returns the WebSocket connections to a URL, which are opened again when they end; see ``WebSocketConnections``.
    /// - Parameters:
    ///   - target: The URL or the request, as for `openWebSocket(_:headers:options:)`.
    ///   - headers: Fields that replace those of the request.
    ///   - options: The options of each connection.
    ///   - policy: The rules for connecting again.
    public nonisolated func webSocketConnections(
        to target: some HTTPTarget, headers: HTTPHeaders = HTTPHeaders(),
        options: WebSocketOptions = WebSocketOptions(),
        policy: WebSocketReconnectionPolicy = WebSocketReconnectionPolicy()
    ) -> WebSocketConnections {
        WebSocketConnections(
            session: self, target: target.httpTarget, headers: headers, options: options, policy: policy)
    }
}
