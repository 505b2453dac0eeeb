package import MartletWire
import Synchronization

/// The request of an exchange, ready for the wire. A request without a body needs no memory except for its head.
package struct ExchangeRequest: Sendable {
    /// The encoded head, framing fields included.
    package let head: [UInt8]
    /// The method, on which the response's framing depends.
    package let method: String
    /// The version in the request line.
    package let version: WireVersion
    /// Whether the head has `Expect: 100-continue`.
    package let expectsContinue: Bool
    /// Whether the connection may persist; `false` if the head has `Connection: close`.
    package let wantsKeepAlive: Bool
    /// Whether the response's body is delivered as it is on the wire, chunk framing included.
    package let isRaw: Bool
    package let ignoresLength: Bool
    /// Whether many responses with the status 104 are accepted.
    package let acceptsProgress: Bool
    /// Whether a 101 is accepted, after which the exchange owns the connection as a stream of bytes.
    package let acceptsUpgrade: Bool
    /// The body and its properties; `nil` without a body.
    private let content: Content?

    private final class Content: Sendable {
        let body: OutgoingBody
        let continueWait: Duration
        let trailers: [(name: String, value: String)]
        let bodyTrailer: BodyTrailer?

        init(
            _ body: OutgoingBody, _ continueWait: Duration, _ trailers: [(name: String, value: String)],
            _ bodyTrailer: BodyTrailer?
        ) {
            (self.body, self.continueWait, self.trailers) = (body, continueWait, trailers)
            self.bodyTrailer = bodyTrailer
        }
    }

    package init(
        head: [UInt8], method: String, version: WireVersion = .http11, body: OutgoingBody = .none,
        expectsContinue: Bool = false, continueWait: Duration = .seconds(1), wantsKeepAlive: Bool = true,
        isRaw: Bool = false, ignoresLength: Bool = false, acceptsProgress: Bool = false,
        acceptsUpgrade: Bool = false, trailers: [(name: String, value: String)] = [], bodyTrailer: BodyTrailer? = nil
    ) {
        (self.head, self.method, self.version) = (head, method, version)
        (self.expectsContinue, self.wantsKeepAlive, self.isRaw) = (expectsContinue, wantsKeepAlive, isRaw)
        (self.ignoresLength, self.acceptsProgress) = (ignoresLength, acceptsProgress)
        self.acceptsUpgrade = acceptsUpgrade
        content = if case .none = body { nil } else { Content(body, continueWait, trailers, bodyTrailer) }
    }

    package var body: OutgoingBody { content?.body ?? .none }
    /// The maximum wait for a 100 before the body is sent anyway (RFC 9110 §10.1.1).
    package var continueWait: Duration { content?.continueWait ?? .zero }
    package var trailers: [(name: String, value: String)] { content?.trailers ?? [] }
    /// The trailer whose value is known after the body was read.
    package var bodyTrailer: BodyTrailer? { content?.bodyTrailer }

    /// Returns the bytes of the first write: the head, and the beginning of a body that is in memory.
    /// - Parameter limit: The maximum number of bytes of the body, which are copied.
    func opening(bodyUpTo limit: Int) -> [UInt8] {
        guard case .bytes(let body) = self.body, !expectsContinue, limit > 0, !body.isEmpty else { return head }
        var bytes = head
        bytes += body.prefix(limit)
        return bytes
    }

    /// Whether an opening is the whole request: no part of the body is left, or waits for its source or a 100.
    func isWhole(_ opening: [UInt8]) -> Bool {
        switch body {
        case .none: true
        case .bytes(let body): !expectsContinue && opening.count - head.count == body.count
        case .source: false
        }
    }
}

/// The spare memory for encoded heads, shared by the process like ``ReceiveMemory``: the memory of a sent head is
/// reused for the next one.
package enum HeadMemory {
    /// The largest head whose memory is reused, in bytes.
    private static let limit = 4096
    private static let spare = Mutex<[UInt8]?>(nil)

    /// Returns the memory of a former head, or none.
    package static func take() -> [UInt8] { (spare.withLockIfAvailable { $0.take() } ?? nil) ?? [] }

    /// Returns the memory of a head that was sent. If a copy of the head still exists, the memory is not overwritten.
    package static func give(_ head: [UInt8]) {
        if head.capacity <= limit { _ = spare.withLockIfAvailable { $0 = head } }
    }
}

/// A trailer that depends on the body before it.
package final class BodyTrailer: Sendable {
    package let name: String
    /// Returns the value after the body was read to its end; `nil` to send no trailer.
    package let value: @Sendable () -> String?

    package init(name: String, value: @escaping @Sendable () -> String?) { (self.name, self.value) = (name, value) }
}

/// A request's body as an exchange sends it.
package enum OutgoingBody: Sendable {
    /// No body, and no framing field.
    case none
    case bytes([UInt8])
    /// Bytes from a source: framed by the length, or in chunks if it is `nil`.
    case source(any RequestBodySource, length: UInt64?)
}

/// The source of the bytes of a request's body.
package protocol RequestBodySource: AnyObject, Sendable {
    /// Returns the next bytes; `nil` after the last. Empty arrays are ignored. One task makes one call after the other.
    /// The call should return or throw soon after its task is cancelled.
    func next() async throws -> [UInt8]?
}
