/// A pass over a stream of events while it runs; it ends with its last reference.
final class EventStreamRun: Sendable {
    /// Where the events come out.
    let relay: EventRelay<ServerSentEvent>
    private let task: Task<Void, Never>

    init(_ reader: EventStreamReader) {
        let relay = EventRelay<ServerSentEvent>()
        self.relay = relay
        // A stream is read within the closure of its call, and the caller's loop is outside of it: hence a task of its own.
        task = Task { await reader.read(into: relay) }
    }

    deinit {
        relay.cancel()
        task.cancel()
    }
}
