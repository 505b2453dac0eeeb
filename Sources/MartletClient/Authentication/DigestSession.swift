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
    mutating func renew(nonce: [UInt8]) {
        self.nonce = nonce
    }
}

extension DigestSession: CustomStringConvertible, CustomReflectable {
    /// Nothing of the key, and nothing of the nonces.
    var description: String { "Digest \(challenge.algorithm.name)" }
    var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}
