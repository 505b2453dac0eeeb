package import MartletWire

/// The request of an exchange, ready for the wire.
package final class ExchangeRequest: Sendable {
    /// The encoded head, framing fields included.
    package let head: [UInt8]
    /// The method, on which the response's framing depends.
    package let method: String
    /// The version in the request line.
    package let version: WireVersion
    package let body: OutgoingBody
    /// Whether the head has `Expect: 100-continue`.
    package let expectsContinue: Bool
    /// The maximum wait for a 100 before the body is sent anyway (RFC 9110 §10.1.1).
    package let continueWait: Duration
    /// Whether the connection may persist; `false` if the head has `Connection: close`.
    package let wantsKeepAlive: Bool
    /// Whether the response's body is delivered as it is on the wire, chunk framing included.
    package let isRaw: Bool
    package let ignoresLength: Bool
    /// Whether many responses with the status 104 are accepted.
    package let acceptsProgress: Bool
    /// Whether a 101 is accepted, after which the exchange owns the connection as a stream of bytes.
    package let acceptsUpgrade: Bool
    package let trailers: [(name: String, value: String)]
    /// The trailer whose value is known after the body was read.
    package let bodyTrailer: BodyTrailer?

    package init(
        head: [UInt8], method: String, version: WireVersion = .http11, body: OutgoingBody = .none,
        expectsContinue: Bool = false, continueWait: Duration = .seconds(1), wantsKeepAlive: Bool = true,
        isRaw: Bool = false, ignoresLength: Bool = false, acceptsProgress: Bool = false,
        acceptsUpgrade: Bool = false, trailers: [(name: String, value: String)] = [], bodyTrailer: BodyTrailer? = nil
    ) {
        (self.head, self.method, self.version) = (head, method, version)
        (self.body, self.expectsContinue, self.continueWait) = (body, expectsContinue, continueWait)
        (self.wantsKeepAlive, self.isRaw, self.ignoresLength) = (wantsKeepAlive, isRaw, ignoresLength)
        (self.acceptsProgress, self.acceptsUpgrade) = (acceptsProgress, acceptsUpgrade)
        (self.trailers, self.bodyTrailer) = (trailers, bodyTrailer)
    }

    /// Whether the first write contains the whole request, because no part of the body waits for its source or a 100.
    var isSentAtOnce: Bool {
        switch body {
        case .none: true
        case .bytes: !expectsContinue
        case .source: false
        }
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
