import MartletTransport
import MartletURL

/// The response to a Digest challenge, for one request (RFC 7616 §3.4).
struct DigestAuthorization: Sendable {
    /// The value of `Authorization` or `Proxy-Authorization`.
    let value: AuthorizationValue
    /// The values for checking the server's own proof.
    let proof: DigestProof

    /// Creates the response to a challenge; `nil` if the body must be covered and is not known.
    /// - Parameters:
    ///   - session: The nonce and the key.
    ///   - useCount: The number of uses of the nonce, including this one.
    ///   - clientNonce: A client nonce of characters that need no quoting; ignored for session algorithms, which use
    ///     that of the session.
    /// - Throws: An error if the system does not support the hash.
    init?(session: DigestSession, user: String, request: AuthenticatedRequest, useCount: UInt32, clientNonce: [UInt8])
        throws(MessageDigestError)
    {
        let challenge = session.challenge
        let hash = challenge.algorithm.hash
        guard let protection = challenge.protection(hasBodyDigest: request.body.isKnown) else { return nil }
        let clientNonce = challenge.algorithm.isSession ? session.clientNonce : clientNonce
        let count = MessageDigest.hexadecimal((0..<4).map { UInt8(truncatingIfNeeded: useCount >> (24 - 8 * $0)) })
        var subject = Array("\(request.method):\(request.target)".utf8)
        if protection == .requestAndBody {
            guard case .bytes(let body) = request.body else { return nil }
            subject += ":".utf8 + (try hash.hexadecimal(of: body))
        }
        let proof = DigestProof(
            algorithm: hash, key: session.key, nonce: session.nonce, count: count, clientNonce: clientNonce,
            protection: protection, target: request.target)
        self.proof = proof
        let response = try proof.response(over: subject)

        // The order and the quotes are those of curl, which servers are tested with.
        var text = [UInt8]("Digest ".utf8)
        try DigestAuthorization.appendUser(user, challenge, to: &text)
        text.append("realm", challenge.realm, isQuoted: true)
        text.append("nonce", session.nonce, isQuoted: true)
        text.append("uri", request.target.utf8, isQuoted: true)
        if let name = protection.name {
            text.append("cnonce", clientNonce, isQuoted: true)
            text.append("nc", count, isQuoted: false)
            text.append("qop", name.utf8, isQuoted: false)
        }
        text.append("response", response, isQuoted: true)
        if let opaque = challenge.opaque { text.append("opaque", opaque, isQuoted: true) }
        // The algorithm is written as the server sent it, because some servers compare it byte by byte.
        if let algorithm = challenge.algorithmText { text.append("algorithm", algorithm.utf8, isQuoted: false) }
        if challenge.hashesUser { text.append("userhash", "true".utf8, isQuoted: false) }
        value = AuthorizationValue(bytes: text)
    }

    /// Returns the hash of user, realm and password, bound to the nonces by session algorithms (RFC 7616 §3.4.2).
    static func key(for challenge: DigestChallenge, user: String, password: String, clientNonce: [UInt8])
        throws(MessageDigestError) -> [UInt8]
    {
        let hash = challenge.algorithm.hash
        let secret = Array(user.utf8) + ":".utf8 + challenge.realm + ":".utf8 + password.utf8
        let key = try hash.hexadecimal(of: secret)
        guard challenge.algorithm.isSession else { return key }
        return try hash.hexadecimal(of: key + ":".utf8 + challenge.nonce + ":".utf8 + clientNonce)
    }

    /// The bytes that are not attribute characters (RFC 8187 §3.2.1).
    private static let notAttributeCharacters = PercentEncoding.EncodeSet(" \"%'()*,/:;<=>?@[\\]{}")

    /// Adds `username`, hashed if the server requires it, or `username*` (RFC 7616 §3.4, §3.4.4).
    private static func appendUser(_ user: String, _ challenge: DigestChallenge, to text: inout [UInt8])
        throws(MessageDigestError)
    {
        if challenge.hashesUser {
            let named = Array(user.utf8) + ":".utf8 + challenge.realm
            text.append("username", try challenge.algorithm.hash.hexadecimal(of: named), isQuoted: true)
        } else if challenge.isUTF8, user.utf8.contains(where: { $0 >= 0x80 }) {
            var extended = Array("UTF-8''".utf8)
            PercentEncoding.append(user, escaping: notAttributeCharacters, to: &extended)
            text.append("username*", extended, isQuoted: false)
        } else {
            // A server that does not support UTF-8 most likely does not know `username*`, and compares bytes.
            text.append("username", user.utf8, isQuoted: true)
        }
    }
}

extension MessageDigestAlgorithm {
    /// Returns the hash of bytes in hexadecimal.
    func hexadecimal(of bytes: [UInt8]) throws(MessageDigestError) -> [UInt8] {
        MessageDigest.hexadecimal(try MessageDigest.digest(self, of: bytes))
    }
}

extension [UInt8] {
    /// Adds a parameter.
    fileprivate mutating func append(_ name: String, _ value: some Sequence<UInt8>, isQuoted: Bool) {
        if last != UInt8(ascii: " ") { append(contentsOf: ", ".utf8) }
        append(contentsOf: "\(name)=".utf8)
        guard isQuoted else { return append(contentsOf: value) }
        append(UInt8(ascii: "\""))
        for byte in value {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { append(UInt8(ascii: "\\")) }
            append(byte)
        }
        append(UInt8(ascii: "\""))
    }
}

/// The state of a Digest challenge between requests of one user to one server: the current nonce and the key.
struct DigestSession: Hashable, Sendable {
    /// The challenge that the session started with.
    let challenge: DigestChallenge
    /// The server's current nonce: that of the challenge, or a later one.
    private(set) var nonce: [UInt8]
    /// The client nonce that the key was made with, used for all requests if the key is bound to it.
    let clientNonce: [UInt8]
    /// The hash of user, realm and password, in hexadecimal, bound to the session if the algorithm requires it.
    let key: [UInt8]

    /// Creates a session without requests.
    init(challenge: DigestChallenge, clientNonce: [UInt8], key: [UInt8]) {
        self.challenge = challenge
        nonce = challenge.nonce
        (self.clientNonce, self.key) = (clientNonce, key)
    }

    /// Sets the nonce of later requests (RFC 7616 §3.5). The key, which belongs to the challenge, does not change.
    mutating func renew(nonce: [UInt8]) { self.nonce = nonce }
}

extension DigestSession: CustomStringConvertible, CustomReflectable {
    /// The algorithm, without the key and the nonces.
    var description: String { "Digest \(challenge.algorithm.rawValue)" }
    var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}

/// A source of the nonces that a client adds to Digest responses.
package struct ClientNonceSource: Sendable {
    /// The function that returns the next nonce, of characters that need no quoting.
    package let next: @Sendable () -> [UInt8]

    /// Creates a source with given nonces, for tests.
    package init(_ next: @escaping @Sendable () -> [UInt8]) { self.next = next }

    /// A source of nonces with 128 bits from the system's secure generator, in hexadecimal.
    package static let system = ClientNonceSource {
        MessageDigest.hexadecimal((0..<16).map { _ in UInt8.random(in: .min ... .max) })
    }
}
