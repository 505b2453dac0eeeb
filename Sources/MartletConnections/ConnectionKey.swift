package import MartletTransport

/// What keeps connections apart: where they lead, and how they were opened.
///
/// The dialer stands for everything else that must not be mixed: TLS identity and trust, resolver and overrides, local
/// address, unix domain socket.
package struct ConnectionKey: Hashable, Sendable {
    /// Where the connection leads.
    package var destination: Destination
    /// The dialer's number.
    package var dialer: UInt64
}
