import MartletTransport

/// Where the nonces come from that a client adds to a Digest response.
package struct ClientNonceSource: Sendable {
    /// Gives the next nonce: characters that need no quoting.
    package let next: @Sendable () -> [UInt8]

    /// A source of the caller's, for tests that know what comes.
    package init(_ next: @escaping @Sendable () -> [UInt8]) {
        self.next = next
    }

    /// 128 bits each, of the system's secure generator, in hexadecimal.
    package static let system = ClientNonceSource {
        var generator = SystemRandomNumberGenerator()
        let words = [generator.next(), generator.next()] as [UInt64]
        return MessageDigest.hexadecimal(
            words.flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> (56 - 8 * $0)) } })
    }
}
