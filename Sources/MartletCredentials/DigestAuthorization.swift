import MartletTransport
import MartletWire

/// The response to a Digest challenge, for one request (RFC 7616 §3.4).
struct DigestAuthorization: Sendable {
    /// The value of `Authorization` or `Proxy-Authorization`.
    let value: AuthorizationValue
    /// What the server's own proof is checked against: everything in front of the target.
    let proof: DigestProof

    /// Answers a challenge.
    ///
    /// - Parameters:
    ///   - session: The nonce and the key.
    ///   - useCount: How many times the nonce was used, with this one.
    ///   - clientNonce: A nonce of the client's, of characters that need no quoting; the session's where the algorithm
    ///     binds the key to it.
    /// - Throws: When the system does not compute the hash. `nil` when the body must be covered and is not known.
    init?(
        session: DigestSession, user: String, request: DigestRequest, useCount: UInt32, clientNonce: [UInt8]
    ) throws(MessageDigestError) {
        let challenge = session.challenge
        let hash = challenge.algorithm.hash
        guard let protection = challenge.protection(hasBodyDigest: request.body.isKnown) else { return nil }
        let clientNonce = challenge.algorithm.isSession ? session.clientNonce : clientNonce
        let count = DigestAuthorization.countText(useCount)
        var subject = "\(request.method):\(request.target)".utf8.map(\.self)
        if protection == .requestAndBody {
            guard let digest = try request.bodyDigest(hash) else { return nil }
            subject += ":".utf8 + digest
        }
        let proof = DigestProof(
            algorithm: hash, key: session.key, nonce: session.nonce, count: count, clientNonce: clientNonce,
            protection: protection, target: request.target)
        self.proof = proof
        let response = try proof.response(over: subject)

        // The order, and what is quoted and what is not, are curl's: servers have been made to work with it.
        var text = [UInt8]("Digest ".utf8)
        try DigestAuthorization.appendUser(user, challenge, hash, to: &text)
        text.appendQuoted("realm", challenge.realm)
        text.appendQuoted("nonce", session.nonce)
        text.appendQuoted("uri", request.target.utf8)
        if let name = protection.name {
            text.appendQuoted("cnonce", clientNonce)
            text.appendToken("nc", count)
            text.appendToken("qop", name.utf8)
        }
        text.appendQuoted("response", response)
        if let opaque = challenge.opaque { text.appendQuoted("opaque", opaque) }
        // As the server wrote it, whose name it is but for the case: there are servers that compare it byte by byte.
        if let algorithm = challenge.algorithmText { text.appendToken("algorithm", algorithm.utf8) }
        if challenge.hashesUser { text.appendToken("userhash", "true".utf8) }
        value = AuthorizationValue(bytes: text)
    }

    /// The hash of user, realm and password, bound to the nonces where the algorithm has it so (RFC 7616 §3.4.2).
    static func key(
        for challenge: DigestChallenge, user: String, password: String, clientNonce: [UInt8]
    ) throws(MessageDigestError) -> [UInt8] {
        let hash = challenge.algorithm.hash
        let secret = Array(user.utf8) + ":".utf8 + challenge.realm + ":".utf8 + password.utf8
        let key = MessageDigest.hexadecimal(try MessageDigest.digest(hash, of: secret))
        guard challenge.algorithm.isSession else { return key }
        let bound = key + ":".utf8 + challenge.nonce + ":".utf8 + clientNonce
        return MessageDigest.hexadecimal(try MessageDigest.digest(hash, of: bound))
    }

    /// `username`, hashed where the server wants it so, or `username*` (RFC 7616 §3.4, §3.4.4).
    private static func appendUser(
        _ user: String, _ challenge: DigestChallenge, _ hash: MessageDigestAlgorithm, to text: inout [UInt8]
    ) throws(MessageDigestError) {
        if challenge.hashesUser {
            let named = Array(user.utf8) + ":".utf8 + challenge.realm
            text.appendQuoted(
                "username", MessageDigest.hexadecimal(try MessageDigest.digest(hash, of: named)))
        } else if challenge.isUTF8, user.utf8.contains(where: { $0 >= 0x80 }) {
            text.appendToken("username*", "UTF-8''".utf8.map(\.self) + extended(user))
        } else {
            // A server that does not say it knows UTF-8 most likely does not know `username*`: bytes it compares.
            text.appendQuoted("username", user.utf8)
        }
    }

    /// The bytes of a text as RFC 8187 §3.2.1 has them: what is no attribute character, in percent-encoding.
    private static func extended(_ text: String) -> [UInt8] {
        var result: [UInt8] = []
        for byte in text.utf8 {
            if ByteClass.isToken(byte), !"*'%".utf8.contains(byte) {
                result.append(byte)
            } else {
                result.append(UInt8(ascii: "%"))
                result += MessageDigest.hexadecimal([byte]).map { $0 >= 0x61 ? $0 - 0x20 : $0 }
            }
        }
        return result
    }

    /// How often the nonce was used, in eight hexadecimal digits.
    private static func countText(_ count: UInt32) -> [UInt8] {
        MessageDigest.hexadecimal((0..<4).map { UInt8(truncatingIfNeeded: count >> (24 - 8 * $0)) })
    }
}

extension [UInt8] {
    /// Adds a parameter whose value is a quoted string.
    fileprivate mutating func appendQuoted(_ name: String, _ value: some Sequence<UInt8>) {
        appendName(name)
        append(UInt8(ascii: "\""))
        for byte in value {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { append(UInt8(ascii: "\\")) }
            append(byte)
        }
        append(UInt8(ascii: "\""))
    }

    /// Adds a parameter whose value stands as it is.
    fileprivate mutating func appendToken(_ name: String, _ value: some Sequence<UInt8>) {
        appendName(name)
        append(contentsOf: value)
    }

    private mutating func appendName(_ name: String) {
        if last != UInt8(ascii: " ") { append(contentsOf: ", ".utf8) }
        append(contentsOf: name.utf8)
        append(UInt8(ascii: "="))
    }
}

/// What is remembered of a Digest challenge from one request to the next: the nonce in force, and the key.
///
/// It is good for the user it was made for alone, and for the one server.
struct DigestSession: Hashable, Sendable {
    /// The challenge it began with.
    let challenge: DigestChallenge
    /// The server's nonce in force: the challenge's, or one that came with a response since.
    private(set) var nonce: [UInt8]
    /// The client's nonce that the key was made with, used for all requests where the key is bound to it.
    let clientNonce: [UInt8]
    /// The hash of user, realm and password, in hexadecimal: bound to the session where the algorithm has it so.
    let key: [UInt8]

    /// A session of no requests yet.
    init(challenge: DigestChallenge, clientNonce: [UInt8], key: [UInt8]) {
        self.challenge = challenge
        nonce = challenge.nonce
        self.clientNonce = clientNonce
        self.key = key
    }

    /// Takes the nonce for the requests to come (RFC 7616 §3.5). The key stays: it belongs to the challenge.
    mutating func renew(nonce: [UInt8]) { self.nonce = nonce }
}

extension DigestSession: CustomStringConvertible, CustomReflectable {
    /// Nothing of the key, and nothing of the nonces.
    var description: String { "Digest \(challenge.algorithm.name)" }
    var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}

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
    var isKnown: Bool { if case .bytes = self { true } else { false } }
}

/// Where the nonces come from that a client adds to a Digest response.
package struct ClientNonceSource: Sendable {
    /// Gives the next nonce: characters that need no quoting.
    package let next: @Sendable () -> [UInt8]

    /// A source of the caller's, for tests that know what comes.
    package init(_ next: @escaping @Sendable () -> [UInt8]) { self.next = next }

    /// 128 bits each, of the system's secure generator, in hexadecimal.
    package static let system = ClientNonceSource {
        var generator = SystemRandomNumberGenerator()
        let words = [generator.next(), generator.next()] as [UInt64]
        return MessageDigest.hexadecimal(
            words.flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> (56 - 8 * $0)) } })
    }
}
