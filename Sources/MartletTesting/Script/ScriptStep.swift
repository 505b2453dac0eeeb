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
