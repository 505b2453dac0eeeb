/// The server's side of a connection, for test origins: one request after the other, strict about framing, with the
/// decision whether the connection may persist. Unread bytes after ``MessageReceiver/Event/end(trailers:)`` belong to
/// the next request: the caller passes them again after ``nextRequest()``.
package struct ServerMachine: ~Copyable, Sendable {
    /// The result of parsing received bytes.
    package typealias Event = MessageReceiver<RequestHead, Never>.Event
    /// An event and the number of bytes used up to it, payload included.
    package typealias Received = MessageReceiver<RequestHead, Never>.Received

    private var receiver: MessageReceiver<RequestHead, Never>
    private var parser: RequestHeadParser

    /// Whether the client waits for a 100 response before it sends the body (RFC 9110 §10.1.1).
    package private(set) var isExpectingContinue = false

    /// Whether the client allows the connection to persist after the response (RFC 9112 §9.3).
    package private(set) var persists = false

    package init(limits: WireLimits = .default) {
        receiver = MessageReceiver(limits: limits, phase: .head)
        parser = RequestHeadParser(limits: limits)
    }

    /// Prepares for the next request. Allowed after ``MessageReceiver/Event/end(trailers:)``.
    package mutating func nextRequest() {
        guard receiver.phase == .finished else {
            receiver.fail(WireError(.illegalEvent, at: 0))
            return
        }
        receiver.start()
        parser.reset()
        isExpectingContinue = false
        persists = false
    }

    /// Parses bytes up to the first event.
    /// - Parameter unread: The unused bytes. While a head is due, they start with the head's first byte.
    /// - Throws: An error in the request, or an exceeded limit. Every later call throws the same error.
    package mutating func receive(_ unread: Span<UInt8>) throws(WireError) -> Received {
        do throws(WireError) {
            return try receiver.isHeadDue ? receiveHead(unread) : receiver.receiveBody(unread)
        } catch { throw receiver.fail(error) }
    }

    private mutating func receiveHead(_ unread: Span<UInt8>) throws(WireError) -> Received {
        guard let head = try parser.parse(unread) else { return receiver.awaitHead(unread.count) }
        let framing = try FramingDecision.request(head).framing
        persists = PersistenceRule.persists(version: head.version, fields: head.fields)
        isExpectingContinue =
            head.version == .http11 && framing != .none && framing != .length(0)
            && head.fields.contains("Expect", token: "100-continue")
        return receiver.pass(head, framing, byteCount: parser.consumedByteCount)
    }

    /// Records that the client sends no more, after all unread bytes were passed to ``receive(_:)``.
    /// - Returns: `nil` between requests; ``MessageReceiver/Event/end(trailers:)`` if only that event is still missing.
    /// - Throws: `truncated` inside a request.
    package mutating func receiveEndOfStream() throws(WireError) -> Event? {
        persists = false
        if receiver.isBetweenMessages || receiver.isBeforeHead { return nil }
        return try receiver.receiveEndOfStream(isClean: true)
    }
}
