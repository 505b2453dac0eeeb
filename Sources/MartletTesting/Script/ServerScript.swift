/// The behavior of a test origin's connection, step by step and independent of HTTP, for servers that misbehave.
///
/// ```swift
/// ServerScript(
///     .expectRequestHead,
///     .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort"),
///     .close)
/// ```
///
/// After the last step the connection is closed normally. The received bytes are in
/// ``OriginRecorder/transcript(ofConnection:)``; failed expectations are in ``OriginRecorder/problems``.
public struct ServerScript: Sendable, Hashable {
    /// The steps, in order.
    public var steps: [ScriptStep]

    /// Creates a script.
    public init(_ steps: ScriptStep...) { self.steps = steps }

    /// Creates a script from an array of steps.
    public init(_ steps: [ScriptStep]) { self.steps = steps }

    /// Reads one request's head, sends a text unchanged, and closes.
    public static func respond(_ text: String) -> ServerScript { ServerScript(.expectRequestHead, .send(text), .close) }

    /// Reads a head and sends a text unchanged, `count` times, and then waits until the client disconnects.
    public static func keepAlive(_ text: String, times count: Int = 1) -> ServerScript {
        let round: [ScriptStep] = [.expectRequestHead, .send(text)]
        return ServerScript((0..<max(0, count)).flatMap { _ in round } + [.awaitClose])
    }
}

/// One step of a ``ServerScript``.
public enum ScriptStep: Sendable, Hashable {
    /// Reads exactly these bytes; other bytes end the script with a reset and a note.
    case expect([UInt8])
    /// Reads up to and including the empty line that ends a head. The bytes after it stay unread.
    case expectRequestHead
    /// Reads a number of bytes.
    case readBody(Int)
    /// Reads until the client ends its direction.
    case readAll

    /// Reads exactly the UTF-8 bytes of a text; see `expect(_:)` with bytes.
    public static func expect(_ text: String) -> ScriptStep { .expect(Array(text.utf8)) }

    /// Sends bytes; continues when the system has accepted them.
    case send([UInt8])
    /// Sends bytes in pieces, each with its own call; the client may still receive several at once.
    case sendPieces([UInt8], size: Int)
    /// Sends bytes one by one with pauses between them.
    case drip([UInt8], every: Duration)
    /// Sends a number of bytes of ``TestPattern``.
    case sendPattern(UInt64)
    /// Sends bytes repeatedly, in pieces of 8 KiB or more, until the client disconnects.
    case sendEndlessly([UInt8])

    /// Sends the UTF-8 bytes of a text.
    public static func send(_ text: String) -> ScriptStep { .send(Array(text.utf8)) }

    /// Sends the UTF-8 bytes of a text in pieces.
    public static func sendPieces(_ text: String, size: Int) -> ScriptStep { .sendPieces(Array(text.utf8), size: size) }

    /// Sends the UTF-8 bytes of a text one by one.
    public static func drip(_ text: String, every interval: Duration) -> ScriptStep {
        .drip(Array(text.utf8), every: interval)
    }

    /// Sends the UTF-8 bytes of a text repeatedly until the client disconnects.
    public static func sendEndlessly(_ text: String) -> ScriptStep { .sendEndlessly(Array(text.utf8)) }

    /// Waits for a duration.
    case pause(Duration)
    /// Neither reads nor sends until the origin stops or the client disconnects. If the client closes normally, that is
    /// detected only while fewer than 256 KiB of its bytes are unread.
    case stall
    /// Reads until the client closes or resets the connection; never fails.
    case awaitClose
    /// Closes the connection normally, over TLS with a `close_notify`. Unread bytes turn it into a reset.
    case close
    /// Closes the connection without a `close_notify`; on a plain connection the same as ``close``.
    case closeWithoutNotify
    /// Resets the connection.
    case reset
    /// Ends only the sending direction.
    case shutdownWriting
    /// Raises a signal, for which the test waits with ``OriginSignals/wait(for:within:)``.
    case signal(String)
    /// Waits for a signal by ``OriginSignals/raise(_:)`` or another connection's script, for at most two minutes.
    case await(String)
}
