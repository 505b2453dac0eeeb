/// Server-sent events of a URL as an `AsyncSequence` that connects again when the stream ends or breaks
/// (WHATWG HTML §9.2).
///
/// Each pass has a connection of its own, which is opened when the first event is asked for. Where it has to be opened
/// again, `Last-Event-ID` says which event was the last; the wait before is the server's `retry`, within bounds, and grows
/// while connecting fails. A 204 ends the sequence. Cancelling the task that awaits an event throws `CancellationError` at
/// once and closes the connection; so does letting the iterator go.
public struct EventStream: AsyncSequence, Sendable {
    /// An event.
    public typealias Element = ServerSentEvent

    let plan: @Sendable () throws -> EventStreamReader

    /// One pass over the events.
    public struct Iterator: AsyncIteratorProtocol {
        private let plan: @Sendable () throws -> EventStreamReader
        private var run: EventStreamRun?
        private var isOver = false

        init(_ plan: @escaping @Sendable () throws -> EventStreamReader) {
            self.plan = plan
        }

        /// The next event; `nil` when the server has no more.
        /// - Throws: An ``HTTPError``: `.unacceptableStatus` and `.unacceptableContentType` when the response is not an
        ///   event stream, `.limitExceeded` when an event is too large, the last fault of the network when connecting has
        ///   failed too often; `CancellationError`. The sequence is over then.
        public mutating func next() async throws -> ServerSentEvent? {
            if isOver { return nil }
            do {
                if run == nil { run = EventStreamRun(try plan()) }
                if let event = try await run?.relay.take() { return event }
            } catch {
                isOver = true
                run = nil
                throw error
            }
            isOver = true
            run = nil
            return nil
        }

        /// The next event; `nil` when the server has no more.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(any Error) -> ServerSentEvent? {
            try await next()
        }
    }

    /// A pass, which connects when its first event is asked for.
    public func makeAsyncIterator() -> Iterator { Iterator(plan) }
}
