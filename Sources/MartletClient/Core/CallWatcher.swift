/// Watches the requests of a call go by, for programs that show each of them.
///
/// Its closures are called by the call itself, one after the other, and must be quick.
package final class CallWatcher: Sendable {
    /// Told of each request's head, byte by byte and with its credentials, before it goes out.
    let sent: @Sendable ([UInt8]) -> Void
    /// Told whenever there is a connection for a request, new or kept.
    let connected: @Sendable () -> Void
    /// Told of each request that another follows, and of what answered it, without the body; nothing where it failed.
    let followed: @Sendable (HTTPHop, HTTPExchange?) -> Void

    /// A watcher.
    package init(
        sent: @escaping @Sendable ([UInt8]) -> Void,
        connected: @escaping @Sendable () -> Void = {},
        followed: @escaping @Sendable (HTTPHop, HTTPExchange?) -> Void
    ) {
        self.sent = sent
        self.connected = connected
        self.followed = followed
    }
}
