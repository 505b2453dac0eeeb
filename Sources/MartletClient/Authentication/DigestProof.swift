import MartletTransport

/// What both sides of a Digest exchange hash, and so can prove to each other (RFC 7616 §3.4.1, §3.5).
struct DigestProof: Sendable {
    /// The hash function.
    let algorithm: MessageDigestAlgorithm
    /// The session's key, in hexadecimal.
    let key: [UInt8]
    /// The server's nonce.
    let nonce: [UInt8]
    /// How often it was used, in hexadecimal.
    let count: [UInt8]
    /// The client's nonce.
    let clientNonce: [UInt8]
    /// What is covered.
    let protection: DigestProtection
    /// The request's target.
    let target: String

    /// What came of a look at the server's proof.
    enum Verdict: Hashable, Sendable {
        /// The server knows the password too.
        case proven
        /// There is no proof, or none that can be checked: the old form's, or one that covers the response's body.
        case unproven
        /// The proof is wrong: this is not who the challenge came from.
        case refuted
    }

    /// The hash over a subject: the method and the target for a request, the target alone for a response.
    func response(over subject: [UInt8]) throws(MessageDigestError) -> [UInt8] {
        var text = key + ":".utf8 + nonce
        if let name = protection.name {
            text += ":".utf8 + count
            text += ":".utf8 + clientNonce
            text += ":\(name)".utf8
        }
        text += ":".utf8 + MessageDigest.hexadecimal(try MessageDigest.digest(algorithm, of: subject))
        return MessageDigest.hexadecimal(try MessageDigest.digest(algorithm, of: text))
    }

    /// Checks `rspauth`.
    ///
    /// - Parameters:
    ///   - claimed: The value of `rspauth`; `nil` when there is none.
    ///   - body: The response's whole body; `nil` when it is not known, and a proof that covers it is not checked.
    func verdict(on claimed: [UInt8]?, body: [UInt8]? = nil) -> Verdict {
        guard let claimed, !claimed.isEmpty, protection != .legacy else { return .unproven }
        var subject = [UInt8](":\(target)".utf8)
        do throws(MessageDigestError) {
            if protection == .requestAndBody {
                guard let body else { return .unproven }
                subject += ":".utf8 + MessageDigest.hexadecimal(try MessageDigest.digest(algorithm, of: body))
            }
            let expected = try response(over: subject)
            let isEqual = claimed.count == expected.count && DigestProof.lowercased(claimed) == expected
            return isEqual ? .proven : .refuted
        } catch {
            return .unproven
        }
    }

    private static func lowercased(_ text: [UInt8]) -> [UInt8] {
        text.map { (UInt8(ascii: "A")...UInt8(ascii: "F")).contains($0) ? $0 | 0x20 : $0 }
    }
}

extension DigestProof: CustomStringConvertible, CustomReflectable {
    /// Nothing of the key.
    var description: String { "proof by \(algorithm.rawValue)" }
    var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}
