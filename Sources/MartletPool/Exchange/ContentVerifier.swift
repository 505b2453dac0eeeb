package import MartletWire

/// The reason why the content of a response is not accepted.
package typealias ContentRejection = any Error & CustomStringConvertible

/// A check of the content of one response: its body without the transfer coding, and with its content codings
/// (RFC 9110 §6.4). The functions are called in this order, one at a time. The exchange may hold its lock during a
/// call, so a verifier must not call the exchange.
package protocol ContentVerifier: AnyObject, Sendable {
    /// Starts the check with the final head.
    /// - Returns: The reason to reject the response before its content is read.
    func begin(_ head: ResponseHead, _ framing: BodyFraming) -> ContentRejection?
    /// Adds the next bytes of the content.
    func add(_ bytes: Span<UInt8>)
    /// Ends the check. If it is called again, the result is the same.
    /// - Returns: The reason to reject the content.
    func finish(trailers: FieldBlock?) -> ContentRejection?
}

/// A way to verify contents. It equals only itself: requests with different ones do not share their response.
package final class ContentVerification: Hashable, Sendable {
    /// Creates the verifier of the response to a request with a method.
    package let verifier: @Sendable (_ method: String) -> any ContentVerifier

    package init(_ verifier: @escaping @Sendable (_ method: String) -> any ContentVerifier) { self.verifier = verifier }

    package static func == (one: ContentVerification, other: ContentVerification) -> Bool { one === other }

    package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
