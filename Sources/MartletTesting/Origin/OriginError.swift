/// Why the test origin, or what a handler asked of it, failed.
public enum OriginError: Error, Hashable, Sendable, CustomStringConvertible {
    /// It could not listen: what the system said.
    case cannotListen(String)
    /// The address given to it cannot be used.
    case invalidAddress(String)
    /// Its certificates could not be made.
    case certificates(String)
    /// Something awaited did not happen in time: what, and what there was instead.
    case timedOut(waitingFor: String)
    /// A request's body is longer than the caller was ready to hold, in bytes.
    case bodyTooLarge(limit: Int)
    /// A request's body was asked for after its answer was sent, or by two readers at once.
    case bodyNotReadable
    /// A request's body is not what was to be decoded from it.
    case bodyNotDecodable(String)
    /// The client's bytes are not HTTP, or its body ended too early.
    case malformedRequest(String)
    /// The client closed, reset or was cut off while something was still to be read or written.
    case disconnected(String)
    /// A handler's body came to fewer bytes than its response declared; the connection is cut.
    case bodyTooShort(declared: UInt64, written: UInt64)
    /// A handler's body came to more bytes than its response declared; the excess is not sent.
    case bodyTooLong(declared: UInt64)
    /// A file could not be read: its path and the reason.
    case file(String)

    /// What happened.
    public var description: String {
        switch self {
        case .cannotListen(let reason): "the origin cannot listen: \(reason)"
        case .invalidAddress(let address): "\(address) is not an address to listen on"
        case .certificates(let reason): "the origin's certificates cannot be made: \(reason)"
        case .timedOut(let awaited): "waited in vain for \(awaited)"
        case .bodyTooLarge(let limit): "the request's body is longer than \(limit) bytes"
        case .bodyNotReadable: "the request's body can be read by one reader, until its response is complete"
        case .bodyNotDecodable(let reason): "the request's body cannot be decoded: \(reason)"
        case .malformedRequest(let reason): "not a valid request: \(reason)"
        case .disconnected(let reason): "the client is gone: \(reason)"
        case .bodyTooShort(let declared, let written):
            "the response declares \(declared) bytes but has only \(written)"
        case .bodyTooLong(let declared): "the response has more than the \(declared) bytes it declares"
        case .file(let reason): reason
        }
    }
}
