public import MartletCore

/// An open WebSocket connection (RFC 6455), made by `HTTPSession.webSocket(_:headers:options:_:)`.
///
/// ```swift
/// try await session.webSocket("wss://example.org/chat") { socket in
///     try await socket.send("hello")
///     for try await message in socket.messages { show(message) }
/// }
/// ```
///
/// Any number of tasks may send; each message is sent as a whole, in the order in which the calls started. One task at a
/// time may read.
///
/// The connection reads in the background, until ``WebSocketOptions/receiveBufferSize`` is reached, so pings are
/// answered while the program handles a message. When the buffer is full, nothing more is read, and the server has to
/// wait: a program that stops reading for a long time also stops answering pings.
///
/// A task that is cancelled while it waits for a message, or for its turn to send one, leaves the connection open and
/// no message is lost. One that is cancelled while it sends closes the connection, because a part of a message cannot be
/// withdrawn. Releasing the last reference starts the closing handshake with the code 1001.
public final class WebSocket: Sendable {
    /// The response to the opening handshake, with the status 101.
    public let response: HTTPResponse
    /// The subprotocol that the server chose from ``WebSocketOptions/subprotocols``; `nil` for none.
    public let subprotocol: String?
    /// Whether messages may be compressed (RFC 7692).
    public let isCompressed: Bool
    /// Whether a lost connection ends the messages without an error, because another connection follows it.
    private let endsQuietly: Bool
    let connection: WebSocketConnection

    /// Creates an open connection, which runs until its end.
    package init(
        _ transport: any WebSocketTransport, response: HTTPResponse, subprotocol: String? = nil,
        negotiation: DeflateNegotiation?, options: WebSocketOptions, endsQuietly: Bool = false
    ) {
        (self.response, self.subprotocol, self.endsQuietly) = (response, subprotocol, endsQuietly)
        isCompressed = negotiation != nil
        let connection = WebSocketConnection(transport, options, negotiation)
        self.connection = connection
        // Unstructured, because an owned connection outlives the call that opens it. It ends with the connection.
        Task { await connection.run() }
    }

    deinit { try? connection.startClosing(.goingAway) }

    // MARK: Sending

    /// Sends a message. Returns when the system has accepted all of it, so a slow server slows the sender down.
    /// - Throws: A ``WebSocketError``: `.closed`, `.connectionLost`; `CancellationError`.
    public func send(_ message: WebSocketMessage) async throws { try await connection.send(message) }

    /// Sends a text, like ``send(_:)-(WebSocketMessage)``.
    public func send(_ text: String) async throws { try await send(.text(text)) }

    /// Sends bytes, like ``send(_:)-(WebSocketMessage)``.
    public func send(_ bytes: [UInt8]) async throws { try await send(.binary(bytes)) }

    /// Sends a message in pieces as they arrive, each in a fragment of its own, with constant memory. Other messages
    /// wait until it is complete; pings do not.
    /// - Parameters:
    ///   - kind: The type. The pieces of a text are UTF-8, and may end within a character.
    ///   - pieces: The bytes, read on the caller's actor. Their error closes the connection, once a piece was sent.
    /// - Throws: The error of the pieces; a ``WebSocketError``: `.invalidText`, `.closed`, `.connectionLost`;
    ///   `CancellationError`.
    public func send<Pieces: AsyncSequence>(_ kind: WebSocketMessage.Kind, contentsOf pieces: Pieces) async throws
    where Pieces.Element: Sequence<UInt8> {
        try await connection.send(kind, pieces)
    }

    // MARK: Receiving

    /// Returns the next message; `nil` after the closing handshake with the code 1000, 1001 or none, and after
    /// ``close(code:reason:)``.
    /// - Throws: A ``WebSocketError``: `.closed` for another code, `.connectionLost`, `.protocolViolation`,
    ///   `.invalidText`, `.invalidCompression`, `.messageTooLarge`, `.pongTimedOut`, `.concurrentRead`;
    ///   `CancellationError`, after which the connection is still open.
    public func receive() async throws -> WebSocketMessage? { try await take { $0.takeMessage() } }

    /// The messages as a sequence, which ends as ``receive()`` does. Each of them is in memory as a whole; see
    /// ``streamedMessages``.
    public var messages: Messages { Messages(socket: self) }

    /// The messages as sequences of pieces, which are not stored as a whole. Requesting a message skips the rest of the
    /// previous one.
    public var streamedMessages: StreamedMessages { StreamedMessages(socket: self) }

    fileprivate func take<Value: Sendable>(_ take: (inout Inbox) throws(WebSocketError) -> Value?) async throws
        -> Value?
    {
        do { return try await connection.take(take) } catch let error as WebSocketError where endsQuietly {
            switch error {
            case .concurrentRead, .messageSkipped: throw error
            default: return nil
            }
        }
    }

    // MARK: Control

    /// Sends a ping, and waits for the reply of the server.
    /// - Returns: The time that it took.
    /// - Throws: A ``WebSocketError`` if the connection ends before; `CancellationError`.
    @discardableResult public func ping() async throws -> Duration {
        let start = ContinuousClock.now
        try await connection.ping()
        return ContinuousClock.now - start
    }

    /// Closes the connection: sends a Close frame after the frame that is being sent, waits for that of the server, at
    /// most ``WebSocketOptions/closeTimeout``, and for the end of the connection. Messages that arrive before the Close
    /// frame of the server can be read, if they fit into the receive buffer; from the first one that does not, all are
    /// discarded. On a connection that is closed or closing, it only waits.
    /// - Parameters:
    ///   - code: The code: 1000 to 1003, 1007 to 1014, 3000 to 4999, or `.noStatus` to send none.
    ///   - reason: A text for developers, with at most 123 bytes of UTF-8.
    /// - Throws: ``WebSocketError/invalidArgument(_:)``, and the connection stays open; `CancellationError`, and the
    ///   connection is closed immediately.
    public func close(code: WebSocketCloseCode = .normalClosure, reason: String = "") async throws {
        try connection.startClosing(code, reason)
        try await connection.waitUntilOver()
    }

    /// Closes the connection like ``close(code:reason:)`` with the code 1000, but discards no message: another task
    /// continues to read until the end.
    package func closeWhileReading() async throws {
        try connection.startClosing(.normalClosure, keepsMessages: true)
        try await connection.waitUntilOver()
    }

    /// Closes the connection immediately, without a Close frame. Waiting tasks receive `.connectionLost`.
    public func cancel() { connection.abort() }

    /// The code of the Close frame that ended the connection, from either side; `.abnormalClosure` if it failed, `nil`
    /// while it is open.
    public var closeCode: WebSocketCloseCode? {
        switch connection.end {
        case .closed(let code, _, _): code
        case .failed: .abnormalClosure
        case nil: nil
        }
    }

    /// The error that ended the connection; `nil` while it is open. `.closed` also after a regular end.
    public var closeError: WebSocketError? { connection.end?.error }
}

extension WebSocket {
    /// The messages of a connection.
    public struct Messages: AsyncSequence, AsyncIteratorProtocol, Sendable {
        let socket: WebSocket

        /// Returns the next message, as ``WebSocket/receive()`` does.
        public func next() async throws -> WebSocketMessage? { try await socket.receive() }
        /// Returns the next message, as ``WebSocket/receive()`` does.
        public func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> WebSocketMessage? {
            try await next()
        }
        /// Returns the iterator, which continues after the last message that was read.
        public func makeAsyncIterator() -> Messages { self }
    }

    /// The messages of a connection, each as a sequence of pieces.
    public struct StreamedMessages: AsyncSequence, AsyncIteratorProtocol, Sendable {
        let socket: WebSocket

        /// Returns the next message, whose end may not have arrived.
        public func next() async throws -> StreamedMessage? {
            guard let (kind, number) = try await socket.take({ $0.takeStart() }) else { return nil }
            return StreamedMessage(kind: kind, socket: socket, number: number)
        }
        /// Returns the next message, whose end may not have arrived.
        public func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> StreamedMessage? {
            try await next()
        }
        /// Returns the iterator.
        public func makeAsyncIterator() -> StreamedMessages { self }
    }

    /// A message that is read in pieces. It can be read once.
    public struct StreamedMessage: AsyncSequence, AsyncIteratorProtocol, Sendable {
        /// The type of the message. The pieces of a text are valid UTF-8, but a piece may end within a character.
        public let kind: WebSocketMessage.Kind
        let socket: WebSocket
        let number: Int

        /// Returns the next bytes, at most 16 KiB; `nil` at the end of the message.
        /// - Throws: A ``WebSocketError``, also if the connection is closed within the message; `CancellationError`.
        public func next() async throws -> [UInt8]? {
            let number = number
            let piece = try await socket.connection.take { inbox throws(WebSocketError) in
                try inbox.takePiece(of: number)
            }
            guard let piece else { throw socket.closeError ?? .connectionLost("within a message") }
            return piece.isEmpty ? nil : piece
        }
        /// Returns the next bytes; `nil` at the end of the message.
        public func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> [UInt8]? {
            try await next()
        }
        /// Returns the iterator.
        public func makeAsyncIterator() -> StreamedMessage { self }
    }
}
