import MartletTransport
import MartletWire

/// A Digest challenge that Martlet can respond to (RFC 7616 §3.3).
struct DigestChallenge: Hashable, Sendable {
    /// The protection space; empty if the server names none.
    let realm: [UInt8]
    /// The server's nonce.
    let nonce: [UInt8]
    /// A value that is returned unchanged.
    let opaque: [UInt8]?
    /// The algorithm.
    let algorithm: DigestAlgorithm
    /// The algorithm as the server wrote it; `nil` if it wrote none, which means MD5.
    let algorithmText: String?
    /// The offered protections of `qop`; ``DigestProtection/legacy`` alone without one.
    let protections: Set<DigestProtection>
    /// Whether the previous nonce was valid but too old, and the password did not fail.
    let isStale: Bool
    /// Whether the user's name is sent hashed.
    let hashesUser: Bool
    /// Whether the server announces UTF-8 for names, and so knows `username*`.
    let isUTF8: Bool
    /// The URLs the challenge is for, as written; empty for the whole origin.
    let domain: [String]

    /// Reads a challenge; `nil`, which means to ignore it (RFC 7616 §3.3, §3.7), for another scheme, for an algorithm or `qop`
    /// that Martlet or this system does not know, and without a nonce.
    init?(_ challenge: HTTPChallenge) {
        guard challenge.isScheme("Digest"), let nonce = challenge.parameter("nonce") else { return nil }
        algorithmText = challenge["algorithm"]
        guard let algorithm = DigestAlgorithm(algorithmText ?? "MD5"), algorithm.hash.isAvailable else { return nil }
        let offered = (challenge["qop"] ?? "").lowercased().split { $0 == "," || $0 == " " || $0 == "\t" }
        protections = offered.isEmpty ? [.legacy] : Set(offered.compactMap { DigestProtection(rawValue: String($0)) })
        // A session key requires a nonce of the client's, which the old form does not send.
        guard !protections.isEmpty, !(offered.isEmpty && algorithm.isSession) else { return nil }
        self.algorithm = algorithm
        self.nonce = nonce.rawValue
        realm = challenge.parameter("realm")?.rawValue ?? []
        opaque = challenge.parameter("opaque")?.rawValue
        isStale = challenge["stale"]?.lowercased() == "true"
        hashesUser = challenge["userhash"]?.lowercased() == "true"
        isUTF8 = challenge["charset"]?.lowercased() == "utf-8"
        domain = (challenge["domain"] ?? "").split { $0 == " " || $0 == "\t" }.map(String.init)
    }

    /// The covered part of a request; `nil` if the server requires the body and its hash is not known.
    func protection(hasBodyDigest: Bool) -> DigestProtection? {
        [.legacy, .request].first(where: protections.contains) ?? (hasBodyDigest ? .requestAndBody : nil)
    }

    /// The strongest of the challenges that Martlet can respond to; of equals the first.
    static func strongest(of challenges: [HTTPChallenge], hasBodyDigest: Bool) -> DigestChallenge? {
        challenges.compactMap(DigestChallenge.init).filter { $0.protection(hasBodyDigest: hasBodyDigest) != nil }.max {
            $0.algorithm.strength < $1.algorithm.strength
        }
    }
}

/// The algorithms of Digest authentication, by their names in RFC 7616 §6.1.
enum DigestAlgorithm: String, Sendable, CaseIterable {
    // From the weakest to the strongest.
    case md5 = "MD5"
    case md5Session = "MD5-sess"
    case sha256 = "SHA-256"
    case sha256Session = "SHA-256-sess"
    case sha512_256 = "SHA-512-256"
    case sha512_256Session = "SHA-512-256-sess"

    /// The algorithm with a name, in any case; `nil` if Martlet does not know it.
    init?(_ name: String) {
        let known = DigestAlgorithm.allCases.first { $0.rawValue.lowercased() == name.lowercased() }
        guard let known else { return nil }
        self = known
    }

    /// The hash function.
    var hash: MessageDigestAlgorithm {
        switch self {
        case .md5, .md5Session: .md5
        case .sha256, .sha256Session: .sha256
        // The RFC does not say so, but its corrected example and all implementations mean FIPS's SHA-512/256.
        case .sha512_256, .sha512_256Session: .sha512_256
        }
    }

    /// Whether the key is bound to the first nonces, the server's and the client's (RFC 7616 §3.4.2).
    var isSession: Bool { rawValue.hasSuffix("-sess") }

    /// The preference among several: the greater. A key that is bound to a session precedes one that is not.
    var strength: Int { DigestAlgorithm.allCases.firstIndex(of: self) ?? 0 }
}

/// The part of a request that the response to a Digest challenge covers (RFC 7616 §3.3).
enum DigestProtection: String, Sendable {
    /// Method and target, as in RFC 2069: without `qop` and without a nonce of the client's.
    case legacy = ""
    /// Method and target.
    case request = "auth"
    /// Method, target and body.
    case requestAndBody = "auth-int"

    /// The value of `qop`; `nil` if there is none.
    var name: String? { self == .legacy ? nil : rawValue }
}

/// The values that both sides of a Digest exchange hash, to prove that they know the password (RFC 7616 §3.4.1, §3.5).
struct DigestProof: Sendable {
    /// The hash function.
    let algorithm: MessageDigestAlgorithm
    /// The session's key, in hexadecimal.
    let key: [UInt8]
    /// The server's nonce.
    let nonce: [UInt8]
    /// The number of its uses, in hexadecimal.
    let count: [UInt8]
    /// The client's nonce.
    let clientNonce: [UInt8]
    /// The covered part.
    let protection: DigestProtection
    /// The request's target.
    let target: String

    /// The result of checking the server's proof.
    enum Verdict: Hashable, Sendable {
        /// The server knows the password too.
        case proven
        /// There is no proof that can be checked: the old form has none, and one may cover the response's body.
        case unproven
        /// The proof is wrong: the response is not from the sender of the challenge.
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
        return try algorithm.hexadecimal(of: text + ":".utf8 + (try algorithm.hexadecimal(of: subject)))
    }

    /// Checks `rspauth`.
    /// - Parameters:
    ///   - claimed: The value of `rspauth`; `nil` if there is none.
    ///   - body: The response's whole body; `nil` if it is not known, and a proof that covers it is not checked.
    func verdict(on claimed: [UInt8]?, body: [UInt8]? = nil) -> Verdict {
        guard let claimed, !claimed.isEmpty, protection != .legacy else { return .unproven }
        var subject = [UInt8](":\(target)".utf8)
        do throws(MessageDigestError) {
            if protection == .requestAndBody {
                guard let body else { return .unproven }
                subject += ":".utf8 + (try algorithm.hexadecimal(of: body))
            }
            return claimed.map(ByteClass.lowercased) == (try response(over: subject)) ? .proven : .refuted
        } catch { return .unproven }
    }
}

extension DigestProof: CustomStringConvertible, CustomReflectable {
    /// The hash function, without the key.
    var description: String { "proof by \(algorithm.rawValue)" }
    var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}
