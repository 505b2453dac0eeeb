/// A digest that could not be computed.
package struct MessageDigestError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What was to be computed.
    package let algorithm: MessageDigestAlgorithm

    /// The algorithm, and why it may be missing.
    package var description: String {
        "this system's OpenSSL does not compute \(algorithm.rawValue); a FIPS configuration forbids some algorithms"
    }
}
