package import MartletWire

/// A proxy's answer to CONNECT that was no tunnel: its own words, never to be taken for the server's.
package struct TunnelRefusal: Sendable {
    /// The head.
    package var head: ResponseHead
    /// The heads that came before it: interim ones, and those of the answers after which the proxy was asked again.
    package var earlier: [ResponseHead]
    /// What came of the body, at most ``bodyLimit`` bytes.
    package var body: [UInt8]
    /// Whether that is all of it.
    package var isBodyComplete: Bool

    /// The most that is kept of a body: 64 KiB, far above any page of an error. It stops a proxy from filling the memory.
    package static let bodyLimit = 64 * 1024

    /// A refusal.
    package init(
        head: ResponseHead, earlier: [ResponseHead] = [], body: [UInt8], isBodyComplete: Bool
    ) {
        self.head = head
        self.earlier = earlier
        self.body = body
        self.isBodyComplete = isBodyComplete
    }
}
