import MartletTransport

/// The algorithms of Digest authentication that Martlet knows (RFC 7616 §6.1).
enum DigestAlgorithm: Hashable, Sendable, CaseIterable {
    case md5
    case md5Session
    case sha256
    case sha256Session
    case sha512_256
    case sha512_256Session

    /// The algorithm of a name, in whatever case; `nil` for one that Martlet does not know.
    init?(_ name: String) {
        let name = name.lowercased()
        guard let algorithm = DigestAlgorithm.allCases.first(where: { $0.name.lowercased() == name }) else {
            return nil
        }
        self = algorithm
    }

    /// The name as the RFC writes it.
    var name: String {
        switch self {
        case .md5: "MD5"
        case .md5Session: "MD5-sess"
        case .sha256: "SHA-256"
        case .sha256Session: "SHA-256-sess"
        case .sha512_256: "SHA-512-256"
        case .sha512_256Session: "SHA-512-256-sess"
        }
    }

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

    /// What is preferred among several: the greater. A key that is bound to a session beats one that is not.
    var strength: Int {
        switch self {
        case .md5: 0
        case .md5Session: 1
        case .sha256: 2
        case .sha256Session: 3
        case .sha512_256: 4
        case .sha512_256Session: 5
        }
    }
}
