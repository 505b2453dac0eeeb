/// An event of a stream of server-sent events (WHATWG HTML §9.2).
public struct ServerSentEvent: Hashable, Sendable {
    /// What kind of event it is; `message` where the stream does not say.
    public var type: String
    /// The data: what the `data` fields said, one line each.
    public var data: String
    /// The identifier that was last set before the event was complete, here or in an event before; empty when none was.
    public var lastEventID: String

    /// An event.
    public init(type: String = "message", data: String, lastEventID: String = "") {
        self.type = type
        self.data = data
        self.lastEventID = lastEventID
    }
}
