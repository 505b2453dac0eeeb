public import MartletClient

/// What came of a request that may be frozen (``MartletClient/HTTPSession/send(_:body:options:whenOffline:)``).
public enum OfflineOutcome: Sendable {
    /// It was answered; the status may be any.
    case answered(HTTPExchange)
    /// It could not be sent, or the server cannot take it just now: the queue sends it later.
    case frozen(OfflineTicket)
}
