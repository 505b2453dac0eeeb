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
    public init(_ steps: ScriptStep...) {
        self.steps = steps
    }

    /// A script of steps made elsewhere.
    public init(_ steps: [ScriptStep]) {
        self.steps = steps
    }

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
