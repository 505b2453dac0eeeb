package import MartletWire

/// Watches the requests of a call go by, for programs that show each of them.
///
/// Its closures are called by the call itself, one after the other, and must be quick.
package final class CallWatcher: Sendable {
    /// Told of each request's head, byte by byte and with its credentials, before it goes out.
    let sent: @Sendable ([UInt8]) -> Void
    /// Told whenever there is a connection for a request, new or kept: the heads of what a proxy answered to CONNECT, where
    /// it is new.
    let connected: @Sendable ([ResponseHead]) -> Void
    /// Told of the heads of an answer after which the same request is sent once more: a 417, or a 407.
    let repeated: @Sendable ([ResponseHead]) -> Void
    /// Told of each request that another follows, and of what answered it, without the body; nothing where it failed.
    let followed: @Sendable (HTTPHop, HTTPExchange?) -> Void

    /// A watcher.
    package init(
        sent: @escaping @Sendable ([UInt8]) -> Void,
        connected: @escaping @Sendable ([ResponseHead]) -> Void = { _ in },
        repeated: @escaping @Sendable ([ResponseHead]) -> Void = { _ in },
        followed: @escaping @Sendable (HTTPHop, HTTPExchange?) -> Void
    ) {
        self.sent = sent
        self.connected = connected
        self.repeated = repeated
        self.followed = followed
    }
}
