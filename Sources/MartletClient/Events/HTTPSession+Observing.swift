extension HTTPSession {
    /// What happens in this session and its views from now on, up to ``SessionEvents/defaultBufferCount`` events ahead of
    /// its reader: a subscription of its own each time.
    ///
    /// Calls that run already are not told of, but for their pause. While nobody is subscribed there are no events, and
    /// they cost nothing.
    public nonisolated var events: SessionEvents {
        events(buffering: SessionEvents.defaultBufferCount)
    }

    /// The same as ``events`` with another buffer.
    /// - Parameter count: How many events are kept for a slow subscriber; at least 1.
    public nonisolated func events(buffering count: Int) -> SessionEvents {
        SessionEvents(hub: core.events, limit: count)
    }

    /// How many subscribers of ``events`` there are.
    package nonisolated var eventSubscriberCount: Int { core.events.count }

    /// How many calls of this session and its views run, as newest values.
    public nonisolated var activity: SessionActivity {
        SessionActivity(registry: core.calls)
    }

    /// The tasks of this session and its views that have not ended, in the order they were made.
    ///
    /// Calls that are awaited, as ``send(_:body:options:)``, are no tasks; ``runningCallCount`` counts both.
    public var tasks: [HTTPTask] { core.tasks.all }

    /// The tasks of a kind that have not ended, in the order they were made.
    public func tasks(of kind: HTTPTask.Kind) -> [HTTPTask] {
        core.tasks.all.filter { $0.kind == kind }
    }
}
