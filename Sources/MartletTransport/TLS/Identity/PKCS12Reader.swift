import COpenSSL

/// Reads PKCS#12 files (RFC 7292).
enum PKCS12Reader {
    /// How the opening of a file ended.
    private enum Opened {
        case contents(LoadedIdentity)
        case wrongPassphrase
        case malformed(String)
        /// It is encrypted in a way that OpenSSL has only in its legacy provider.
        case needsLegacy(String)
    }

    /// Reads a file's bytes.
    static func load(
        _ bytes: [UInt8], source: String, passphrase: SecretBytes?
    ) throws(TLSError) -> LoadedIdentity {
        var opened = open(bytes, source, passphrase)
        if case .needsLegacy = opened, let library = LegacyLibrary() {
            opened = withExtendedLifetime(library) {
                let read = library.run { open(bytes, source, passphrase) }
                guard case .contents(let identity) = read else { return read }
                // What the legacy library has made must not outlive it: it is made anew from its bytes.
                return identity.copied().map { .contents($0) } ?? .malformed("its contents are unreadable")
            }
        }
        switch opened {
        case .contents(let identity): return identity
        case .wrongPassphrase:
            throw TLSError(
                passphrase == nil ? .passphraseRequired(source: source) : .wrongPassphrase(source: source))
        case .malformed(let reason): throw TLSError(.identity(reason: reason, source: source))
        case .needsLegacy(let reason):
            throw TLSError(
                .identity(
                    reason:
                        "it is encrypted by an old method (RC2, or DES) that needs OpenSSL's legacy provider,"
                        + " which cannot be loaded here; convert it: openssl pkcs12 -legacy -in OLD -nodes |"
                        + " openssl pkcs12 -export -out NEW (\(reason))", source: source))
        }
    }

    private static func open(_ bytes: [UInt8], _ source: String, _ passphrase: SecretBytes?) -> Opened {
        OpenSSLErrors.clear()
        defer { OpenSSLErrors.clear() }
        let read = unsafe PEMReader.withMemory(bytes) { bio in unsafe d2i_PKCS12_bio(bio, nil) }
        guard let file = unsafe read ?? nil else {
            return .malformed("it is no PKCS#12 file (\(OpenSSLErrors.drain().text))")
        }
        defer { unsafe PKCS12_free(file) }
        // An empty pass phrase is written in two ways: as none, and as one of no characters.
        var attempts: [SecretBytes?] = [passphrase]
        if passphrase == nil { attempts.append(SecretBytes("")) }
        if let passphrase, passphrase.count == 0 { attempts.append(nil) }
        var last = Opened.wrongPassphrase
        for attempt in attempts {
            last = unsafe parse(file, source, attempt)
            guard case .wrongPassphrase = last else { return last }
        }
        return last
    }

    private static func parse(_ file: OpaquePointer, _ source: String, _ passphrase: SecretBytes?) -> Opened {
        OpenSSLErrors.clear()
        var (keyPointer, leafPointer): (OpaquePointer?, OpaquePointer?) = (nil, nil)
        var chainPointer: OpaquePointer?
        let parse = { (text: UnsafePointer<CChar>?) -> Int32 in
            unsafe PKCS12_parse(file, text, &keyPointer, &leafPointer, &chainPointer)
        }
        let result: Int32
        if let passphrase {
            // A pass phrase goes to OpenSSL as a C string.
            if passphrase.holdsNUL { return .wrongPassphrase }
            result = unsafe passphrase.withCString { unsafe parse($0) }
        } else {
            result = parse(nil)
        }
        let errors = OpenSSLErrors.drain()
        let key = unsafe keyPointer.map { unsafe PrivateKey(owning: $0) }
        let leaf = unsafe leafPointer.map { unsafe Certificate(owning: $0) }
        var authorities: [Certificate] = []
        if let chain = unsafe chainPointer {
            while let raw = unsafe OPENSSL_sk_shift(chain) {
                authorities.append(unsafe Certificate(owning: OpaquePointer(raw)))
            }
            unsafe OPENSSL_sk_free(chain)
        }
        guard result == 1 else {
            if errors.has(ERR_LIB_PKCS12, PKCS12_R_MAC_VERIFY_FAILURE) { return .wrongPassphrase }
            if errors.isUnsupportedAlgorithm { return .needsLegacy(errors.text) }
            // Without a MAC a wrong pass phrase shows only where decrypting yields no sense.
            if errors.has(ERR_LIB_PKCS12, PKCS12_R_PKCS12_CIPHERFINAL_ERROR) { return .wrongPassphrase }
            return .malformed(errors.text)
        }
        guard let key else { return .malformed("there is no private key in it") }
        guard let leaf else { return .malformed("there is no certificate for its private key in it") }
        return .contents(
            LoadedIdentity(
                leaf: leaf, key: key, authorities: authorities, certificateSource: source, keySource: source))
    }
}

/// A pass phrase, kept outside of arrays and strings so that it can be wiped when the last holder lets go of it. The string
/// it was made from is the caller's.
///
/// `@unchecked Sendable`: written once, in `init`, and read from then on.
@safe final class SecretBytes: Hashable, @unchecked Sendable {
    /// The bytes, and a zero behind them for the functions that want one.
    private let start: UnsafeMutablePointer<CChar>
    /// How many bytes there are, without the zero.
    let count: Int

    /// A copy of some text's UTF-8.
    init(_ text: String) {
        count = text.utf8.count
        unsafe start = .allocate(capacity: count + 1)
        var index = 0
        for byte in text.utf8 {
            unsafe (start + index).initialize(to: CChar(bitPattern: byte))
            index += 1
        }
        unsafe (start + count).initialize(to: 0)
    }

    deinit {
        unsafe OPENSSL_cleanse(start, count)
        unsafe start.deallocate()
    }

    /// Whether a C string would end before its end.
    var holdsNUL: Bool { (0..<count).contains { index in unsafe start[index] == 0 } }

    /// Calls a closure with the bytes, behind which there is a zero.
    func withCString<Value>(_ body: (UnsafePointer<CChar>) -> Value) -> Value {
        unsafe body(UnsafePointer(start))
    }

    /// Compared without regard to where they differ first.
    static func == (left: SecretBytes, right: SecretBytes) -> Bool {
        unsafe left.count == right.count && CRYPTO_memcmp(left.start, right.start, left.count) == 0
    }

    func hash(into hasher: inout Hasher) { hasher.combine(count) }
}
