import CMartletOpenSSL

/// A certificate and its private key, sent to a peer that requests a certificate.
///
/// Neither the key nor the pass phrase appears in descriptions, mirrors or dumps.
public struct TLSIdentity: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable
{
    enum Material: Hashable, Sendable {
        case pem(certificates: PEMSource, key: PEMSource?)
        case pkcs12(PEMSource)
    }

    let material: Material
    let passphrase: SecretBytes?

    private init(_ material: Material, _ passphrase: String?) {
        self.material = material
        self.passphrase = passphrase.map(SecretBytes.init)
    }

    /// Creates an identity from PEM or DER. A worker thread reads and checks it when a connection first needs it.
    /// - Parameters:
    ///   - certificateChain: The leaf certificate first, then the authorities between it and the root.
    ///   - privateKey: The private key (PKCS#8 or traditional); `nil` if it is in the same text as the certificates.
    ///   - passphrase: The pass phrase of an encrypted private key. It is never requested on the terminal.
    public init(certificateChain: PEMSource, privateKey: PEMSource? = nil, passphrase: String? = nil) {
        self.init(.pem(certificates: certificateChain, key: privateKey), passphrase)
    }

    /// Creates an identity from PKCS#12 (RFC 7292); otherwise like ``init(certificateChain:privateKey:passphrase:)``.
    /// - Parameter passphrase: The file's pass phrase; `nil` and an empty text open the same files.
    public init(pkcs12: PEMSource, passphrase: String? = nil) { self.init(.pkcs12(pkcs12), passphrase) }

    /// Reads and checks an identity in PEM or DER files. Blocks the calling thread for milliseconds.
    /// - Throws: ``TLSError`` of kind `.identity`, `.passphraseRequired` or `.wrongPassphrase`, which names the file.
    public static func pem(certificates: String, key: String? = nil, passphrase: String? = nil) throws(TLSError)
        -> TLSIdentity
    {
        try TLSIdentity(
            certificateChain: .file(certificates), privateKey: key.map { .file($0) }, passphrase: passphrase
        ).checked()
    }

    /// Reads and checks an identity in a PKCS#12 file. Blocks the calling thread for milliseconds.
    ///
    /// Files of old programs (RC2, DES) need OpenSSL's legacy provider; if it is missing, the error reports that.
    /// - Throws: ``TLSError`` of kind `.identity`, `.passphraseRequired` or `.wrongPassphrase`, which names the file.
    public static func pkcs12(file: String, passphrase: String? = nil) throws(TLSError) -> TLSIdentity {
        try TLSIdentity(pkcs12: .file(file), passphrase: passphrase).checked()
    }

    /// Reads and checks an identity in the bytes of a PKCS#12 file, like ``pkcs12(file:passphrase:)``.
    public static func pkcs12(bytes: [UInt8], passphrase: String? = nil) throws(TLSError) -> TLSIdentity {
        try TLSIdentity(pkcs12: .bytes(bytes), passphrase: passphrase).checked()
    }

    private func checked() throws(TLSError) -> TLSIdentity {
        _ = try TLSIdentityLoader.load(self)
        return self
    }

    /// Reads and checks the identity on a worker thread, so that the caller's executor is not blocked.
    ///
    /// Cancelling the task does not end the check, which takes milliseconds.
    /// - Throws: ``TLSError`` of kind `.identity`, `.passphraseRequired` or `.wrongPassphrase`, which names the file.
    public func check() async throws(TLSError) {
        let identity = self
        _ = try await BlockingThreadPool.shared.run { () throws(TLSError) in try identity.checked() }
    }

    /// The sources of certificates and key, without the pass phrase.
    public var description: String {
        switch material {
        case .pem(let certificates, let key): "certificates from \(certificates), key from \(key ?? certificates)"
        case .pkcs12(let source): "PKCS#12 from \(source)"
        }
    }

    /// The same text as ``description``.
    public var debugDescription: String { description }

    /// A mirror of ``description`` only.
    public var customMirror: Mirror { Mirror(self, children: ["source": description]) }
}

/// A pass phrase, stored outside of arrays and strings so that it can be wiped when its last owner releases it. The
/// caller's string is not wiped. `@unchecked Sendable`: written only in `init`.
@safe final class SecretBytes: Hashable, @unchecked Sendable {
    /// The bytes, and a zero after them for C functions.
    private let start: UnsafeMutablePointer<CChar>
    /// The number of bytes, without the zero.
    let count: Int

    /// Copies the UTF-8 bytes of a text.
    init(_ text: String) {
        count = text.utf8.count
        unsafe start = .allocate(capacity: count + 1)
        unsafe start.initialize(repeating: 0, count: count + 1)
        for (index, byte) in text.utf8.enumerated() { unsafe start[index] = CChar(bitPattern: byte) }
    }

    deinit {
        unsafe OPENSSL_cleanse(start, count)
        unsafe start.deallocate()
    }

    /// Whether the text contains a NUL, which would end a C string early.
    var holdsNUL: Bool { (0..<count).contains { index in unsafe start[index] == 0 } }

    /// Calls a closure with the bytes, followed by a zero.
    func withCString<Value>(_ body: (UnsafePointer<CChar>) -> Value) -> Value { unsafe body(UnsafePointer(start)) }

    /// Compares in a time that does not depend on the position of the first difference.
    static func == (left: SecretBytes, right: SecretBytes) -> Bool {
        unsafe left.count == right.count && CRYPTO_memcmp(left.start, right.start, left.count) == 0
    }

    func hash(into hasher: inout Hasher) { hasher.combine(count) }
}
