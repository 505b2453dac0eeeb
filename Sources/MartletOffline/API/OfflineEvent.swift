public import MartletClient
public import SystemPackage

/// What happens in an ``OfflineQueue``.
public enum OfflineEvent: Sendable {
    /// A request was written to the directory.
    case submitted(OfflineTicket)
    /// A request is being sent, for the so-manieth time, counted from 1 over all processes.
    case attempt(OfflineTicket, number: Int)
    /// The server took it, and it is out of the queue: the status was 2xx, or 304. The body is what came of it, up to the
    /// limit of the session for bodies in memory and within ``OfflineQueueOptions/responseBodyTime``.
    case delivered(OfflineTicket, HTTPExchange)
    /// It was not taken, or not answered, and will be sent again by itself.
    case postponed(OfflineTicket, OfflinePostponement)
    /// It will not be sent again by itself, since that would not help; it stays in the queue as a dead letter until it is
    /// retried or dropped.
    case dead(OfflineTicket, OfflineDeadLetter)
    /// It may have taken effect or not, and sending it again might double that; it stays in the queue until it is retried or
    /// dropped. Only requests without an `Idempotency-Key` come to this, whose method is not idempotent.
    case uncertain(OfflineTicket, OfflineDeadLetter)
    /// Its time was up before a server accepted it. It stays in the queue as a dead letter with the reason
    /// ``OfflineDeadLetter/Reason/expired`` until it is retried or dropped.
    case expired(OfflineTicket)
    /// It was dropped, and is out of the queue.
    case dropped(OfflineTicket)
    /// A file in the directory is no record of a request that can be read, and lies here now.
    case setAside(path: FilePath, reason: String)
    /// A file in the directory cannot be read, and was left where it is.
    case leftAlone(path: FilePath, reason: String)
    /// Something could not be written down. The request waits, and it is tried again.
    case fileFailed(OfflineTicket, HTTPError)
    /// Nothing waits to be sent any more: what is left are dead letters and uncertain ones, if anything.
    case drained
}
