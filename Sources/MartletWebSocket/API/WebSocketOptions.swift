public import MartletCore

/// The options of a WebSocket connection: `options: .init { $0.subprotocols = ["graphql-transport-ws"] }`.
public struct WebSocketOptions: Sendable {
    /// The options of the opening handshake, which override the session's. The total timeout ends with the handshake.
    public var request = RequestOptions()
    /// The subprotocols to offer, in order of preference (RFC 6455 §1.9); none by default. The server chooses one of
    /// them, or none: see ``WebSocket/subprotocol``.
    public var subprotocols: [String] = []
    /// The compression to offer (RFC 7692); `nil` for none. The server decides whether it is used.
    public var compression: WebSocketCompression? = WebSocketCompression()
    /// The maximum size of a received message after decompression; 16 MiB by default, `nil` for no limit. It also holds
    /// for streamed messages, which are never stored as a whole. A larger message closes the connection.
    public var messageLimit: ByteCount? = .mebibytes(16)
    /// The maximum size of the payload of a received frame; `nil` (the default) for that of the message.
    public var frameLimit: ByteCount?
    /// The size of received messages above which no more is read from the connection until messages are taken; 64 KiB
    /// by default. TCP then slows the server down. One read of at most 16 KiB may exceed it.
    public var receiveBufferSize = ByteCount.kibibytes(64)
    /// The maximum size of the frames that are sent, before compression; 64 KiB by default, at least 1 KiB. Larger
    /// messages are sent in fragments, between which pings are answered.
    public var fragmentSize = ByteCount.kibibytes(64)
    /// The time between two pings, which keep proxies from closing the connection and detect a lost server; 20 s by
    /// default, as in Python's `websockets`. `nil` for none.
    public var pingInterval: Duration? = .seconds(20)
    /// The time without any byte of the server after which a ping fails the connection; 20 s by default. It does not
    /// apply while the receive buffer is full.
    public var pongTimeout = Duration.seconds(20)
    /// The maximum time from the first Close frame to the end of the connection, which is then closed without waiting
    /// for the server; 10 s by default.
    public var closeTimeout = Duration.seconds(10)
    /// The function that waits for the timeouts above; tests replace it.
    package var sleep: @Sendable (Timer, Duration) async throws -> Void = { try await Task.sleep(for: $1) }

    /// The waits of a connection.
    package enum Timer: Sendable { case ping, pong, close, reconnection }

    /// Creates the default options.
    public init() {}

    /// Creates options that a closure sets.
    public init(_ change: (inout WebSocketOptions) -> Void) { change(&self) }
}

/// The parameters of the compression of messages, `permessage-deflate` (RFC 7692 §7.1).
///
/// With the defaults, a connection that has sent a compressed message holds 256 KiB for the compressor, and one that
/// has received one holds 40 KiB. Smaller windows, and no context takeover, need less memory between messages.
public struct WebSocketCompression: Hashable, Sendable {
    /// The base-two logarithm of the window's size for sent messages, from 9 to 15; 15 by default.
    public var clientMaximumWindowBits = 15
    /// The same for received messages: the server must agree to a number below 15.
    public var serverMaximumWindowBits = 15
    /// Whether the server must compress each message on its own; `false` by default.
    public var serverNoContextTakeover = false
    /// Whether this client compresses each message on its own; `false` by default. The server may demand it.
    public var clientNoContextTakeover = false
    /// The size in bytes below which messages are sent uncompressed; 128 by default.
    public var threshold = 128
    /// The level of zlib, from 1 (fast) to 9 (small); `nil` (the default) for zlib's own.
    public var level: Int?

    /// Creates the default parameters.
    public init() {}
}
