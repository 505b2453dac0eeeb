import CMartletOpenSSL

/// The SHA-256 of a public key (its SubjectPublicKeyInfo in DER, RFC 7469 §2.4), which identifies a server even after
/// its certificate is renewed with the same key.
public struct PublicKeyPin: Hashable, Sendable, CustomStringConvertible {
    /// The 32 bytes of the digest.
    public let sha256: [UInt8]

    /// Creates a pin from the digest's bytes.
    /// - Throws: ``TLSError`` of kind `.configuration` unless there are 32.
    public init(sha256: [UInt8]) throws(TLSError) {
        guard sha256.count == 32 else {
            throw TLSError(.configuration(reason: "a public key pin has 32 bytes of SHA-256, not \(sha256.count)"))
        }
        self.sha256 = sha256
    }

    /// Parses a pin: 44 characters of base64, with or without the prefix `sha256//`, as curl writes it.
    /// - Throws: ``TLSError`` of kind `.configuration` that contains the text.
    public init(_ text: String) throws(TLSError) {
        let digits = text.hasPrefix("sha256//") ? text.dropFirst("sha256//".count) : text[...]
        let input = Array(digits.utf8)
        var output = [UInt8](repeating: 0, count: 48)
        OpenSSLLibrary.load()
        // 44 characters give 33 bytes, the last one padding. Encoding them again rejects texts with other unused bits.
        guard input.count == 44, input.last == UInt8(ascii: "="), input[42] != UInt8(ascii: "="),
            unsafe EVP_DecodeBlock(&output, input, 44) == 33,
            Base64.encoded(Array(output[..<32])).utf8.elementsEqual(input)
        else {
            OpenSSLErrors.clear()
            throw TLSError(
                .configuration(
                    reason: "“\(text.prefix(80))” is not a public key pin: a pin has 44 characters of base64,"
                        + " with or without sha256// before them"))
        }
        sha256 = Array(output[..<32])
    }

    /// Creates the pin of a public key, or of a certificate's key, in PEM or DER. Reads a file on the calling thread.
    /// - Throws: ``TLSError`` of kind `.configuration` that names the source.
    public init(of source: PEMSource) throws(TLSError) {
        let bytes = try source.bytes { .configuration(reason: "public key from \($1): \($0)") }
        let certificate = (try? PEMParser.readCertificates(in: bytes))?.first
        let key =
            certificate.map { unsafe Certificate.publicKey(of: $0.pointer) }
            ?? PEMParser.publicKey(in: bytes)?.publicBytes
        guard let key else {
            throw TLSError(.configuration(reason: "no readable public key or certificate in \(source)"))
        }
        sha256 = MessageDigest.sha256(key)
    }

    /// The pin of a certificate's key.
    init(of certificate: OpaquePointer) { sha256 = MessageDigest.sha256(unsafe Certificate.publicKey(of: certificate)) }

    /// The digest in base64.
    public var base64: String { Base64.encoded(sha256) }

    /// `sha256//` and the digest in base64, as in curl's `--pinnedpubkey`.
    public var description: String { "sha256//\(base64)" }
}

/// Pins in the form that is compared with chains: each pinned certificate as its SHA-256.
struct PinSet: Sendable {
    let publicKeys: Set<PublicKeyPin>?
    let certificates: Set<[UInt8]>
    let scope: CertificatePins.Scope

    /// Reads the certificates. Blocks.
    init(_ pins: CertificatePins) throws(TLSError) {
        publicKeys = pins.publicKeys
        scope = pins.scope
        var digests: Set<[UInt8]> = []
        for source in pins.certificates {
            for certificate in try PEMParser.certificates(of: source) {
                unsafe digests.insert(Certificate.sha256(of: certificate.pointer))
            }
        }
        certificates = digests
    }

    func contains(_ certificate: OpaquePointer) -> Bool {
        !certificates.isEmpty && certificates.contains(unsafe Certificate.sha256(of: certificate))
    }

    func isSatisfied(by evidence: PinCandidates) -> Bool {
        let keys = scope == .leaf ? Array(evidence.publicKeys.prefix(1)) : evidence.publicKeys
        let hasKey = publicKeys.map { keys.contains(where: $0.contains) } ?? true
        let hasCertificate = certificates.isEmpty || evidence.certificates.contains(where: certificates.contains)
        return hasKey && hasCertificate
    }
}

/// The part of a chain that pins are compared with: the verified chain; if nothing was verified, only the leaf, since
/// the server has proven possession of that key only. It is stored with the session, so that pins apply to connections
/// that resume the session as well.
struct PinCandidates: Equatable, Sendable {
    /// The keys, the leaf's first.
    var publicKeys: [PublicKeyPin]
    /// SHA-256 of each certificate, the leaf's first.
    var certificates: [[UInt8]]

    /// The candidates of a chain, the leaf first.
    init(_ chain: [OpaquePointer]) {
        unsafe publicKeys = chain.map { unsafe PublicKeyPin(of: $0) }
        unsafe certificates = chain.map { unsafe Certificate.sha256(of: $0) }
    }
}

/// Base64 with padding (RFC 4648 §4).
private enum Base64 {
    static func encoded(_ bytes: [UInt8]) -> String {
        OpenSSLLibrary.load()
        // The text, and a zero that OpenSSL appends.
        var output = [UInt8](repeating: 0, count: (bytes.count + 2) / 3 * 4 + 1)
        let count = unsafe EVP_EncodeBlock(&output, bytes, Int32(clamping: bytes.count))
        return String(decoding: output[..<Int(max(0, count))], as: UTF8.self)
    }
}
