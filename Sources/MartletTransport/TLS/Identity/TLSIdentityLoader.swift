import CMartletOpenSSL

/// The loader of identities, which checks that key and certificate belong together. It blocks: deriving a key from a
/// pass phrase takes milliseconds, or longer if the file specifies more rounds.
enum TLSIdentityLoader {
    /// Reads an identity.
    /// - Throws: `.identity`, `.passphraseRequired`, `.wrongPassphrase`.
    static func load(_ identity: TLSIdentity) throws(TLSError) -> LoadedIdentity {
        let loaded: LoadedIdentity
        switch identity.material {
        case .pem(let certificates, let key): loaded = try pem(certificates, key: key, passphrase: identity.passphrase)
        case .pkcs12(let source):
            let bytes = try source.bytes(TLSError.Kind.identity)
            loaded = try PKCS12Parser.load(bytes, source: source.description, passphrase: identity.passphrase)
        }
        OpenSSLErrors.clear()
        guard unsafe X509_check_private_key(loaded.leaf.pointer, loaded.key.pointer) == 1 else {
            OpenSSLErrors.clear()
            throw TLSError(
                .identity(
                    reason: "the private key does not belong to the first certificate, which is in"
                        + " \(loaded.certificateSource)", source: loaded.keySource))
        }
        return loaded
    }

    private static func pem(_ source: PEMSource, key: PEMSource?, passphrase: SecretBytes?) throws(TLSError)
        -> LoadedIdentity
    {
        var chainBytes = try source.bytes(TLSError.Kind.identity)
        defer { wipe(&chainBytes, of: key == nil ? source : nil) }
        let certificates: [Certificate]
        do throws(PEMError) { certificates = try PEMParser.readCertificates(in: chainBytes) } catch {
            throw TLSError(.identity(reason: error.description, source: source.description))
        }
        guard let leaf = certificates.first else {
            throw TLSError(.identity(reason: "it contains no readable certificate", source: source.description))
        }
        let opened: PEMParser.KeyResult
        if let key {
            var keyBytes = try key.bytes(TLSError.Kind.identity)
            defer { wipe(&keyBytes, of: key) }
            opened = PEMParser.privateKey(in: keyBytes, passphrase: passphrase)
        } else {
            opened = PEMParser.privateKey(in: chainBytes, passphrase: passphrase)
        }
        let keySource = (key ?? source).description
        switch opened {
        case .key(let key):
            return LoadedIdentity(
                leaf: leaf, key: key, authorities: Array(certificates.dropFirst()),
                certificateSource: source.description, keySource: keySource)
        case .passphraseRequired: throw TLSError(.passphraseRequired(source: keySource))
        case .wrongPassphrase: throw TLSError(.wrongPassphrase(source: keySource))
        case .failed(let reason): throw TLSError(.identity(reason: reason, source: keySource))
        }
    }

    /// Wipes bytes that were read from a file. Bytes in memory belong to the caller, and are not wiped.
    private static func wipe(_ bytes: inout [UInt8], of source: PEMSource?) {
        guard case .file? = source?.storage else { return }
        unsafe bytes.withUnsafeMutableBytes { unsafe OPENSSL_cleanse($0.baseAddress, $0.count) }
    }
}

/// The contents of an identity: certificate, key, and the authorities between certificate and root.
struct LoadedIdentity {
    let leaf: Certificate
    let key: PrivateKey
    let authorities: [Certificate]
    /// The sources of certificate and key, for errors.
    let certificateSource: String
    let keySource: String

    /// Returns a copy in the default library context; `nil` if that fails.
    func copied() -> LoadedIdentity? {
        let certificates = ([leaf] + authorities).compactMap { certificate in
            PEMParser.certificates(in: unsafe Certificate.der(of: certificate.pointer))?.first
        }
        guard certificates.count == authorities.count + 1, let key = key.copied() else { return nil }
        return LoadedIdentity(
            leaf: certificates[0], key: key, authorities: Array(certificates.dropFirst()),
            certificateSource: certificateSource, keySource: keySource)
    }
}

/// The parser of PKCS#12 files (RFC 7292).
private enum PKCS12Parser {
    private enum Opened {
        case contents(LoadedIdentity)
        case wrongPassphrase
        case malformed(String)
        /// The file is encrypted by a method that OpenSSL has only in its legacy provider.
        case needsLegacy(String)
    }

    /// Reads an identity from the bytes of a file.
    static func load(_ bytes: [UInt8], source: String, passphrase: SecretBytes?) throws(TLSError) -> LoadedIdentity {
        var opened = open(bytes, source, passphrase)
        if case .needsLegacy = opened, let library = LegacyOpenSSLContext() {
            opened = withExtendedLifetime(library) {
                let read = library.run { open(bytes, source, passphrase) }
                guard case .contents(let identity) = read else { return read }
                // Objects of the legacy context must not outlive it, so they are copied by encoding and decoding.
                return identity.copied().map { .contents($0) } ?? .malformed("its contents are unreadable")
            }
        }
        switch opened {
        case .contents(let identity): return identity
        case .wrongPassphrase:
            throw TLSError(passphrase == nil ? .passphraseRequired(source: source) : .wrongPassphrase(source: source))
        case .malformed(let reason): throw TLSError(.identity(reason: reason, source: source))
        case .needsLegacy(let reason):
            throw TLSError(
                .identity(
                    reason: "it is encrypted by an old method (RC2, or DES) that needs OpenSSL's legacy provider,"
                        + " which cannot be loaded here; convert it: openssl pkcs12 -legacy -in OLD -nodes |"
                        + " openssl pkcs12 -export -out NEW (\(reason))", source: source))
        }
    }

    private static func open(_ bytes: [UInt8], _ source: String, _ passphrase: SecretBytes?) -> Opened {
        OpenSSLErrors.clear()
        defer { OpenSSLErrors.clear() }
        let read = unsafe PEMParser.withMemory(bytes) { bio in unsafe d2i_PKCS12_bio(bio, nil) }
        guard let file = unsafe read ?? nil else {
            return .malformed("it is not a PKCS#12 file (\(OpenSSLErrors.drain().text))")
        }
        defer { unsafe PKCS12_free(file) }
        let opened = unsafe parse(file, source, passphrase)
        guard case .wrongPassphrase = opened, passphrase?.count ?? 0 == 0 else { return opened }
        // Files without a pass phrase are written in two ways: with none, and with an empty one.
        return unsafe parse(file, source, passphrase == nil ? SecretBytes("") : nil)
    }

    private static func parse(_ file: OpaquePointer, _ source: String, _ passphrase: SecretBytes?) -> Opened {
        OpenSSLErrors.clear()
        var (keyPointer, leafPointer): (OpaquePointer?, OpaquePointer?) = (nil, nil)
        var chainPointer: OpaquePointer?
        let parse = { (text: UnsafePointer<CChar>?) -> Int32 in
            unsafe PKCS12_parse(file, text, &keyPointer, &leafPointer, &chainPointer)
        }
        // OpenSSL receives the pass phrase as a C string, which ends at the first NUL.
        if passphrase?.holdsNUL ?? false { return .wrongPassphrase }
        let result = unsafe passphrase?.withCString { unsafe parse($0) } ?? parse(nil)
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
            if errors.contains(PKCS12_R_MAC_VERIFY_FAILURE, of: ERR_LIB_PKCS12) { return .wrongPassphrase }
            if errors.isUnsupportedAlgorithm { return .needsLegacy(errors.text) }
            // In a file without a MAC, a wrong pass phrase is detected only by unreadable contents.
            let isUnreadable = errors.contains(PKCS12_R_PKCS12_CIPHERFINAL_ERROR, of: ERR_LIB_PKCS12)
            return isUnreadable ? .wrongPassphrase : .malformed(errors.text)
        }
        guard let key else { return .malformed("it contains no private key") }
        guard let leaf else { return .malformed("it contains no certificate for its private key") }
        return .contents(
            LoadedIdentity(leaf: leaf, key: key, authorities: authorities, certificateSource: source, keySource: source)
        )
    }
}

/// The owner of an OpenSSL library context with the legacy algorithms, which the default context does not have.
@safe package final class LegacyOpenSSLContext {
    package let pointer: OpaquePointer
    private let legacy: OpaquePointer
    private let standard: OpaquePointer

    /// Creates the context; `nil` if the legacy provider is not installed, as in statically linked programs.
    package init?() {
        guard let pointer = unsafe OSSL_LIB_CTX_new() else { return nil }
        let legacy = unsafe OSSL_PROVIDER_load(pointer, "legacy")
        let standard = unsafe OSSL_PROVIDER_load(pointer, "default")
        OpenSSLErrors.clear()
        guard let legacy = unsafe legacy, let standard = unsafe standard else {
            if let legacy = unsafe legacy { unsafe OSSL_PROVIDER_unload(legacy) }
            if let standard = unsafe standard { unsafe OSSL_PROVIDER_unload(standard) }
            unsafe OSSL_LIB_CTX_free(pointer)
            return nil
        }
        unsafe (self.pointer, self.legacy, self.standard) = (pointer, legacy, standard)
    }

    deinit {
        unsafe OSSL_PROVIDER_unload(legacy)
        unsafe OSSL_PROVIDER_unload(standard)
        unsafe OSSL_LIB_CTX_free(pointer)
    }

    /// Calls a closure with this context instead of the default one, on this thread only. Objects that OpenSSL creates
    /// in the closure must not outlive the context.
    func run<Value>(_ body: () -> Value) -> Value {
        let usual = unsafe OSSL_LIB_CTX_set0_default(pointer)
        defer { _ = unsafe OSSL_LIB_CTX_set0_default(usual) }
        return body()
    }
}
