import MartletTransport
import MartletWire

/// A Digest challenge that Martlet can respond to (RFC 7616 §3.3).
struct DigestChallenge: Hashable, Sendable {
    /// The realm of the protection space; empty if the server names none.
    let realm: [UInt8]
    /// The server's nonce.
    let nonce: [UInt8]
    /// A value that the client returns unchanged.
    let opaque: [UInt8]?
    /// The algorithm of the challenge.
    let algorithm: DigestAlgorithm
    /// The algorithm as the server wrote it; `nil` if it is missing, which means MD5.
    let algorithmText: String?
    /// The offered protections of `qop`; only ``DigestProtection/legacy`` without `qop`.
    let protections: Set<DigestProtection>
    /// Whether the previous nonce was valid but stale, so that the password was not rejected.
    let isStale: Bool
    /// Whether the user's name is sent hashed.
    let hashesUser: Bool
    /// Whether the server supports UTF-8 names, and so `username*`.
    let isUTF8: Bool
    /// The URLs of the protection space, as written; empty for the whole origin.
    let domain: [String]

    /// Parses a challenge. Returns `nil` for another scheme, an unsupported algorithm or `qop`, and a missing nonce:
    /// the challenge is then ignored (RFC 7616 §3.3, §3.7).
    init?(_ challenge: HTTPChallenge) {
        guard challenge.isScheme("Digest"), let nonce = challenge.parameter("nonce") else { return nil }
        algorithmText = challenge["algorithm"]
        guard let algorithm = DigestAlgorithm(algorithmText ?? "MD5"), algorithm.hash.isAvailable else { return nil }
        let offered = (challenge["qop"] ?? "").lowercased().split { $0 == "," || $0 == " " || $0 == "\t" }
        protections = offered.isEmpty ? [.legacy] : Set(offered.compactMap { DigestProtection(rawValue: String($0)) })
        // A session key requires a client nonce, which the legacy form does not send.
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

    /// Returns the part of a request to cover; `nil` if that includes the body and the hash of the body is not known.
    func protection(hasBodyDigest: Bool) -> DigestProtection? {
        [.legacy, .request].first(where: protections.contains) ?? (hasBodyDigest ? .requestAndBody : nil)
    }

    /// Returns the strongest challenge that Martlet can respond to; the first of equal ones.
    static func strongest(of challenges: [HTTPChallenge], hasBodyDigest: Bool) -> DigestChallenge? {
        challenges.compactMap(DigestChallenge.init).filter { $0.protection(hasBodyDigest: hasBodyDigest) != nil }.max {
            $0.algorithm.strength < $1.algorithm.strength
        }
    }
}

/// The algorithms of Digest authentication, with their names in RFC 7616 §6.1.
enum DigestAlgorithm: String, Sendable, CaseIterable {
    // The order is from the weakest to the strongest.
    case md5 = "MD5"
    case md5Session = "MD5-sess"
    case sha256 = "SHA-256"
    case sha256Session = "SHA-256-sess"
    case sha512_256 = "SHA-512-256"
    case sha512_256Session = "SHA-512-256-sess"

    /// Creates the algorithm with a name, in any case; `nil` for an unknown one.
    init?(_ name: String) {
        let known = DigestAlgorithm.allCases.first { $0.rawValue.lowercased() == name.lowercased() }
        guard let known else { return nil }
        self = known
    }

    /// The hash function of the algorithm.
    var hash: MessageDigestAlgorithm {
        switch self {
        case .md5, .md5Session: .md5
        case .sha256, .sha256Session: .sha256
        // The RFC names no hash function; its corrected example and all implementations use FIPS's SHA-512/256.
        case .sha512_256, .sha512_256Session: .sha512_256
        }
    }

    /// Whether the key is bound to the first nonces, the server's and the client's (RFC 7616 §3.4.2).
    var isSession: Bool { rawValue.hasSuffix("-sess") }

    /// The rank of the algorithm; the greatest is preferred. A session algorithm is above its hash without a session.
    var strength: Int { DigestAlgorithm.allCases.firstIndex(of: self) ?? 0 }
}

/// The part of a request that the response to a Digest challenge covers (RFC 7616 §3.3).
enum DigestProtection: String, Sendable {
    /// The method and the target, as in RFC 2069: without `qop` and without a client nonce.
    case legacy = ""
    /// The method and the target.
    case request = "auth"
    /// The method, the target and the body.
    case requestAndBody = "auth-int"

    /// The value of `qop`; `nil` for the legacy form.
    var name: String? { self == .legacy ? nil : rawValue }
}

/// The values that client and server hash to prove that they know the password (RFC 7616 §3.4.1, §3.5).
struct DigestProof: Sendable {
    /// The hash function of the algorithm.
    let algorithm: MessageDigestAlgorithm
    /// The session's key, in hexadecimal.
    let key: [UInt8]
    /// The server's nonce.
    let nonce: [UInt8]
    /// The use count of the nonce, in hexadecimal.
    let count: [UInt8]
    let clientNonce: [UInt8]
    /// The covered part of the request.
    let protection: DigestProtection
    /// The target of the request.
    let target: String

    /// Returns the hash over a subject: the method and the target for a request, only the target for a response.
    func response(over subject: [UInt8]) throws(MessageDigestError) -> [UInt8] {
        var text = key + ":".utf8 + nonce
        if let name = protection.name {
            text += ":".utf8 + count
            text += ":".utf8 + clientNonce
            text += ":\(name)".utf8
        }
        return try algorithm.hexadecimal(of: text + ":".utf8 + (try algorithm.hexadecimal(of: subject)))
    }

    /// Whether the server's proof, the value of `rspauth`, is wrong: the server does not know the password. The legacy
    /// form has no proof. With `auth-int` it is not checked, because it covers the body, which is not read yet.
    func isRefuted(by claimed: [UInt8]?) -> Bool {
        guard let claimed, !claimed.isEmpty, protection == .request,
            let expected = try? response(over: Array(":\(target)".utf8))
        else { return false }
        return claimed.map(ByteClass.lowercased) != expected
    }
}

extension DigestProof: CustomStringConvertible, CustomReflectable {
    /// The hash function, without the key.
    var description: String { "proof by \(algorithm.rawValue)" }
    var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}
