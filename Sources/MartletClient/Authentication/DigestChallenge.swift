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
