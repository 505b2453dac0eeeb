import MartletTransport
import MartletWire

/// A Digest challenge that can be answered (RFC 7616 §3.3).
struct DigestChallenge: Hashable, Sendable {
    /// The protection space; empty where the server names none.
    let realm: [UInt8]
    /// What the server wants hashed in.
    let nonce: [UInt8]
    /// What is given back as it came.
    let opaque: [UInt8]?
    /// What hashes.
    let algorithm: DigestAlgorithm
    /// The algorithm as the server wrote it; `nil` when it wrote none, and MD5 is meant.
    let algorithmText: String?
    /// Whether `auth` is offered.
    let offersRequest: Bool
    /// Whether `auth-int` is offered.
    let offersRequestAndBody: Bool
    /// Whether no `qop` was given.
    let isLegacy: Bool
    /// Whether the nonce before was right but too old, and the password not what failed.
    let isStale: Bool
    /// Whether the user's name is sent hashed.
    let hashesUser: Bool
    /// Whether the server says that names are UTF-8, and so knows `username*`.
    let isUTF8: Bool
    /// The addresses the challenge is for, as written; empty for the whole origin.
    let domain: [String]

    /// Reads a challenge.
    ///
    /// `nil` when it is of another scheme, of an algorithm or `qop` that Martlet or this system does not know, or when it
    /// has no nonce: such a challenge is passed over (RFC 7616 §3.3, §3.7).
    init?(_ challenge: HTTPChallenge) {
        guard challenge.isScheme("Digest"), let nonce = challenge.parameter("nonce") else { return nil }
        algorithmText = challenge["algorithm"]
        guard let algorithm = DigestAlgorithm(algorithmText ?? "MD5"), algorithm.hash.isAvailable else {
            return nil
        }
        let offered = (challenge["qop"] ?? "").lowercased().split { $0 == "," || $0 == " " || $0 == "\t" }
        offersRequest = offered.contains("auth")
        offersRequestAndBody = offered.contains("auth-int")
        isLegacy = offered.isEmpty
        guard isLegacy || offersRequest || offersRequestAndBody else { return nil }
        // A session key takes a nonce of the client's, which the old form does not send.
        guard !(isLegacy && algorithm.isSession) else { return nil }
        self.algorithm = algorithm
        self.nonce = nonce.rawValue
        realm = challenge.parameter("realm")?.rawValue ?? []
        opaque = challenge.parameter("opaque")?.rawValue
        isStale = challenge["stale"]?.lowercased() == "true"
        hashesUser = challenge["userhash"]?.lowercased() == "true"
        isUTF8 = challenge["charset"]?.lowercased() == "utf-8"
        domain = (challenge["domain"] ?? "").split { $0 == " " || $0 == "\t" }.map(String.init)
    }

    /// What of a request is covered; `nil` when the server insists on the body and its hash cannot be known.
    func protection(hasBodyDigest: Bool) -> DigestProtection? {
        if isLegacy { return .legacy }
        if offersRequest { return .request }
        return hasBodyDigest ? .requestAndBody : nil
    }

    /// The strongest of the challenges that can be answered; of equals the first.
    static func strongest(of challenges: [HTTPChallenge], hasBodyDigest: Bool) -> DigestChallenge? {
        var best: DigestChallenge?
        for challenge in challenges {
            guard let candidate = DigestChallenge(challenge),
                candidate.protection(hasBodyDigest: hasBodyDigest) != nil
            else { continue }
            if best.map({ $0.algorithm.strength < candidate.algorithm.strength }) ?? true { best = candidate }
        }
        return best
    }
}

/// The algorithms of Digest authentication that Martlet knows (RFC 7616 §6.1).
enum DigestAlgorithm: String, Sendable, CaseIterable {
    // From the weakest to the strongest, by the names that the RFC has.
    case md5 = "MD5"
    case md5Session = "MD5-sess"
    case sha256 = "SHA-256"
    case sha256Session = "SHA-256-sess"
    case sha512_256 = "SHA-512-256"
    case sha512_256Session = "SHA-512-256-sess"

    /// The algorithm of a name, in whatever case; `nil` for one that Martlet does not know.
    init?(_ name: String) {
        let name = name.lowercased()
        guard let algorithm = DigestAlgorithm.allCases.first(where: { $0.name.lowercased() == name }) else {
            return nil
        }
        self = algorithm
    }

    /// The name as the RFC writes it.
    var name: String { rawValue }

    /// The hash function.
    var hash: MessageDigestAlgorithm {
        switch self {
        case .md5, .md5Session: .md5
        case .sha256, .sha256Session: .sha256
        // The RFC does not say so, but its corrected example and all that speak it mean FIPS's SHA-512/256.
        case .sha512_256, .sha512_256Session: .sha512_256
        }
    }

    /// Whether the key is bound to the first nonces, the server's and the client's (RFC 7616 §3.4.2).
    var isSession: Bool {
        switch self {
        case .md5Session, .sha256Session, .sha512_256Session: true
        case .md5, .sha256, .sha512_256: false
        }
    }

    /// The preference among several: the greater. A key that is bound to a session beats one that is not.
    var strength: Int { DigestAlgorithm.allCases.firstIndex(of: self) ?? 0 }
}

/// What of a request the response to a Digest challenge covers (RFC 7616 §3.3).
enum DigestProtection: Hashable, Sendable {
    /// Method and target, as RFC 2069 had it: no `qop` at all, and no nonce of the client's.
    case legacy
    /// Method and target: `auth`.
    case request
    /// Method, target and body: `auth-int`.
    case requestAndBody

    /// The value of `qop`; `nil` where there is none.
    var name: String? {
        switch self {
        case .legacy: nil
        case .request: "auth"
        case .requestAndBody: "auth-int"
        }
    }
}

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
