import COpenSSL

/// The SHA-256 of a public key (its SubjectPublicKeyInfo in DER, RFC 7469 §2.4): what a server is recognised by, however
/// often its certificate is renewed with the same key.
public struct PublicKeyPin: Hashable, Sendable, CustomStringConvertible {
    /// The 32 bytes of the digest.
    public let sha256: [UInt8]

    /// A pin by the digest's bytes.
    /// - Throws: ``TLSError`` of kind `.configuration` when there are not 32.
    public init(sha256: [UInt8]) throws(TLSError) {
        guard sha256.count == 32 else {
            throw TLSError(
                .configuration(reason: "a public key pin has 32 bytes of SHA-256, not \(sha256.count)"))
        }
        self.sha256 = sha256
    }

    /// A pin as text: 44 characters of base64, with or without `sha256//` before them, as curl writes it.
    /// - Throws: ``TLSError`` of kind `.configuration` that shows the text.
    public init(_ text: String) throws(TLSError) {
        let digits = text.hasPrefix("sha256//") ? text.dropFirst("sha256//".count) : text[...]
        let input = Array(digits.utf8)
        var output = [UInt8](repeating: 0, count: 48)
        OpenSSLLibrary.load()
        // 44 characters give 33 bytes, the last of which the padding stands for.
        guard input.count == 44, input.last == UInt8(ascii: "="), input[42] != UInt8(ascii: "="),
            unsafe EVP_DecodeBlock(&output, input, 44) == 33
        else { throw PublicKeyPin.malformed(text) }
        OpenSSLErrors.clear()
        sha256 = Array(output[..<32])
        // Several texts would give the same bytes; only one of them is base64.
        guard base64.utf8.elementsEqual(input) else { throw PublicKeyPin.malformed(text) }
    }

    /// The pin of a public key, or of a certificate's, in PEM or DER. Reads a file on the calling thread.
    /// - Throws: ``TLSError`` of kind `.configuration` that names the source.
    public init(of source: PEMSource) throws(TLSError) {
        let bytes: [UInt8]
        do throws(SystemError) {
            bytes = try PEMReader.bytes(of: source)
        } catch {
            throw TLSError(.configuration(reason: "public key from \(source): \(error)"))
        }
        if let certificate = try? PEMReader.readCertificates(in: bytes).first {
            unsafe self.init(of: certificate.pointer)
            return
        }
        guard let key = PEMReader.publicKey(in: bytes) else {
            throw TLSError(.configuration(reason: "no readable public key or certificate in \(source)"))
        }
        self.init(digestOf: key.publicBytes)
    }

    /// The pin of a certificate's key.
    init(of certificate: OpaquePointer) {
        var output: UnsafeMutablePointer<UInt8>?
        let count = unsafe i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &output)
        guard count > 0, let output = unsafe output else {
            OpenSSLErrors.clear()
            sha256 = []
            return
        }
        defer { unsafe CRYPTO_free(output, nil, 0) }
        sha256 = unsafe Digest.sha256(unsafe UnsafeRawBufferPointer(start: output, count: Int(count)))
    }

    /// The pin of a key's DER.
    private init(digestOf bytes: [UInt8]) {
        sha256 = unsafe bytes.withUnsafeBytes { unsafe Digest.sha256($0) }
    }

    private static func malformed(_ text: String) -> TLSError {
        TLSError(
            .configuration(
                reason:
                    "“\(text.prefix(80))” is no public key pin: 44 characters of base64, sha256// before them or not"
            ))
    }

    /// The digest in base64.
    public var base64: String {
        var output = [UInt8](repeating: 0, count: 64)
        let count = unsafe EVP_EncodeBlock(&output, sha256, Int32(sha256.count))
        return String(decoding: output[..<Int(max(0, count))], as: UTF8.self)
    }

    /// `sha256//` and the digest in base64, as curl takes it.
    public var description: String { "sha256//\(base64)" }
}

/// Pins ready to be compared: certificates are read.
struct PinSet: Sendable {
    let publicKeys: Set<PublicKeyPin>?
    /// SHA-256 of each certificate's DER.
    let certificates: Set<[UInt8]>
    let scope: CertificatePins.Scope

    /// Reads the certificates. Blocks.
    init(_ pins: CertificatePins) throws(TLSError) {
        publicKeys = pins.publicKeys
        scope = pins.scope
        var digests: Set<[UInt8]> = []
        for source in pins.certificates {
            for certificate in try PEMReader.certificates(of: source) {
                unsafe digests.insert(Certificate.sha256(of: certificate.pointer))
            }
        }
        certificates = digests
    }

    /// Whether a certificate is itself one of those pinned.
    func contains(_ certificate: OpaquePointer) -> Bool {
        !certificates.isEmpty && certificates.contains(unsafe Certificate.sha256(of: certificate))
    }

    /// Whether a chain has what is pinned.
    func isSatisfied(by evidence: ChainEvidence) -> Bool {
        let keys = scope == .leaf ? Array(evidence.publicKeys.prefix(1)) : evidence.publicKeys
        let hasKey = publicKeys.map { keys.contains(where: $0.contains) } ?? true
        let hasCertificate =
            certificates.isEmpty || evidence.certificates.contains(where: certificates.contains)
        return hasKey && hasCertificate
    }
}

/// What a server's chain must contain, beyond being valid.
struct CertificatePins: Hashable, Sendable {
    /// Which certificates may have the pinned key.
    enum Scope: Hashable, Sendable {
        /// Any of the verified chain: the server's own or an authority's.
        case verifiedChain
        /// The server's own alone, as curl's `--pinnedpubkey`.
        case leaf
    }

    /// Keys, one of which must be there; `nil`: any.
    var publicKeys: Set<PublicKeyPin>?
    /// Certificates, one of which must be there; none: any.
    var certificates: [PEMSource] = []
    /// Where the key must be.
    var scope = Scope.verifiedChain
}

/// SHA-256 by OpenSSL.
enum Digest {
    /// The 32 bytes; none when OpenSSL cannot make them.
    static func sha256(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
        var output = [UInt8](repeating: 0, count: 32)
        var count: UInt32 = 0
        guard
            unsafe EVP_Digest(bytes.baseAddress, bytes.count, &output, &count, EVP_sha256(), nil) == 1,
            count == 32
        else {
            OpenSSLErrors.clear()
            return []
        }
        return output
    }
}
