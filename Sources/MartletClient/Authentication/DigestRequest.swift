import MartletTransport

/// What of a request a Digest response is computed over.
struct DigestRequest: Sendable {
    /// The method.
    var method: String
    /// The target exactly as it stands in the request line.
    var target: String
    /// The body, as far as its hash can be known.
    var body: AuthenticatedBody = .bytes([])

    /// The hash of the body in hexadecimal; `nil` when the body is not known.
    func bodyDigest(_ algorithm: MessageDigestAlgorithm) throws(MessageDigestError) -> [UInt8]? {
        switch body {
        case .unknown: nil
        case .bytes(let bytes): MessageDigest.hexadecimal(try MessageDigest.digest(algorithm, of: bytes))
        }
    }
}

/// A request's body to one who would hash it.
package enum AuthenticatedBody: Sendable {
    /// The bytes; none for a request without a body.
    case bytes([UInt8])
    /// A body that is read as it is sent, and not before.
    case unknown

    /// Whether its hash can be had before the request goes out.
    var isKnown: Bool {
        if case .bytes = self { true } else { false }
    }
}
