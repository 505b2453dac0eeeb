/// What a connection of a test origin does, step by step, without regard for HTTP: for servers that
/// misbehave.
///
/// ```swift
/// ServerScript(
///     .expectRequestHead,
///     .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort"),
///     .close)
/// ```
///
/// Behind the last step the connection is closed in order. What it received is in
/// ``OriginLedger/transcript(ofConnection:)``; what it expected in vain, in ``OriginLedger/notes``.
public struct ServerScript: Sendable, Hashable {
    /// The steps, in order.
    public var steps: [ScriptStep]

    /// A script.
    public init(_ steps: ScriptStep...) { self.steps = steps }

    /// A script of steps made elsewhere.
    public init(_ steps: [ScriptStep]) { self.steps = steps }

    /// Reads one request's head, sends a text as it is, and closes.
    public static func respond(_ text: String) -> ServerScript {
        ServerScript(.expectRequestHead, .send(text), .close)
    }

    /// Reads one request's head and sends a text as it is, so many times on one connection, which then stays
    /// open until the client leaves.
    public static func keepAlive(_ text: String, times count: Int = 1) -> ServerScript {
        let round: [ScriptStep] = [.expectRequestHead, .send(text)]
        return ServerScript((0..<max(0, count)).flatMap { _ in round } + [.awaitClose])
    }
}

/// One step of a ``ServerScript``.
public struct ScriptStep: Sendable, Hashable {
    enum Action: Sendable, Hashable {
        case expect([UInt8])
        case expectRequestHead
        case readBody(Int)
        case readAll
        case send([UInt8])
        case sendPieces([UInt8], size: Int, interval: Duration)
        case sendPattern(UInt64)
        case sendEndlessly([UInt8])
        case pause(Duration)
        case stall
        case awaitClose
        case close
        case cut
        case reset
        case shutdownWriting
        case raise(String)
        case await(String)
    }

    let action: Action

    // MARK: Receiving

    /// Reads exactly these bytes; any other ends the script with a reset and a note.
    public static func expect(_ bytes: [UInt8]) -> ScriptStep { ScriptStep(action: .expect(bytes)) }

    /// Reads exactly the UTF-8 bytes of a text; else as ``expect(_:)-([UInt8])``.
    public static func expect(_ text: String) -> ScriptStep { .expect(Array(text.utf8)) }

    /// Reads up to and including the empty line that ends a head. What follows it stays unread.
    public static let expectRequestHead = ScriptStep(action: .expectRequestHead)

    /// Reads so many bytes.
    public static func readBody(_ count: Int) -> ScriptStep { ScriptStep(action: .readBody(max(0, count))) }

    /// Reads until the client ends its direction.
    public static let readAll = ScriptStep(action: .readAll)

    // MARK: Sending

    /// Sends bytes; goes on when the system has taken them.
    public static func send(_ bytes: [UInt8]) -> ScriptStep { ScriptStep(action: .send(bytes)) }

    /// Sends the UTF-8 bytes of a text.
    public static func send(_ text: String) -> ScriptStep { .send(Array(text.utf8)) }

    /// Sends bytes in pieces, each with a call of its own; the client may still find several at once.
    public static func sendPieces(_ bytes: [UInt8], size: Int) -> ScriptStep {
        ScriptStep(action: .sendPieces(bytes, size: max(1, size), interval: .zero))
    }

    /// Sends the UTF-8 bytes of a text in pieces.
    public static func sendPieces(_ text: String, size: Int) -> ScriptStep {
        .sendPieces(Array(text.utf8), size: size)
    }

    /// Sends bytes one by one with a pause between two.
    public static func drip(_ bytes: [UInt8], every interval: Duration) -> ScriptStep {
        ScriptStep(action: .sendPieces(bytes, size: 1, interval: interval))
    }

    /// Sends the UTF-8 bytes of a text one by one.
    public static func drip(_ text: String, every interval: Duration) -> ScriptStep {
        .drip(Array(text.utf8), every: interval)
    }

    /// Sends so many bytes of ``TestPattern``.
    public static func sendPattern(_ count: UInt64) -> ScriptStep { ScriptStep(action: .sendPattern(count)) }

    /// Sends bytes again and again until the client leaves.
    public static func sendEndlessly(_ bytes: [UInt8]) -> ScriptStep {
        ScriptStep(action: .sendEndlessly(bytes))
    }

    /// Sends the UTF-8 bytes of a text again and again until the client leaves.
    public static func sendEndlessly(_ text: String) -> ScriptStep { .sendEndlessly(Array(text.utf8)) }

    // MARK: Waiting

    /// Waits so long.
    public static func pause(_ duration: Duration) -> ScriptStep { ScriptStep(action: .pause(duration)) }

    /// Neither reads nor sends until the origin stops, or the client resets the connection; a client that
    /// closes in order is noticed too, once all it sent before was looked at.
    public static let stall = ScriptStep(action: .stall)

    /// Reads until the client closes or resets the connection; never fails.
    public static let awaitClose = ScriptStep(action: .awaitClose)

    // MARK: Ending

    /// Closes the connection in order, over TLS with a `close_notify`. Unread bytes turn it into a reset.
    public static let close = ScriptStep(action: .close)

    /// Closes the connection without a `close_notify`; on a plain connection the same as ``close``.
    public static let closeWithoutNotify = ScriptStep(action: .cut)

    /// Resets the connection.
    public static let reset = ScriptStep(action: .reset)

    /// Ends the sending direction alone.
    public static let shutdownWriting = ScriptStep(action: .shutdownWriting)

    // MARK: Order

    /// Raises a signal, for which the test waits with ``OriginSignals/wait(for:within:)``.
    public static func signal(_ name: String) -> ScriptStep { ScriptStep(action: .raise(name)) }

    /// Waits for a signal that the test raises with ``OriginSignals/raise(_:)``, or another connection's
    /// script; for at most two minutes.
    public static func await(_ name: String) -> ScriptStep { ScriptStep(action: .await(name)) }
}
