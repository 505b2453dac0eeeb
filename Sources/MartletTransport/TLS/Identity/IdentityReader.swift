import COpenSSL

/// Reads identities and checks that their parts belong together. Blocks: deriving a key from a pass phrase takes
/// milliseconds, and as long as the file says.
enum IdentityReader {
    /// Reads an identity.
    /// - Throws: `.identity`, `.passphraseRequired`, `.wrongPassphrase`.
    static func load(_ identity: TLSIdentity) throws(TLSError) -> LoadedIdentity {
        let loaded: LoadedIdentity
        switch identity.material {
        case .pem(let certificates, let key):
            loaded = try pem(certificates, key: key, passphrase: identity.passphrase)
        case .pkcs12(let source):
            loaded = try PKCS12Reader.load(
                bytes(of: source), source: source.description, passphrase: identity.passphrase)
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

    private static func pem(
        _ source: PEMSource, key: PEMSource?, passphrase: SecretBytes?
    ) throws(TLSError) -> LoadedIdentity {
        var chainBytes = try bytes(of: source)
        defer { wipe(&chainBytes, of: key == nil ? source : nil) }
        let certificates: [Certificate]
        do throws(PEMFault) {
            certificates = try PEMReader.readCertificates(in: chainBytes)
        } catch {
            throw TLSError(.identity(reason: error.description, source: source.description))
        }
        guard let leaf = certificates.first else {
            throw TLSError(.identity(reason: "no readable certificate in it", source: source.description))
        }
        let opened: PrivateKey
        if let key {
            var keyBytes = try bytes(of: key)
            defer { wipe(&keyBytes, of: key) }
            opened = try privateKey(keyBytes, key.description, passphrase)
        } else {
            opened = try privateKey(chainBytes, source.description, passphrase)
        }
        return LoadedIdentity(
            leaf: leaf, key: opened, authorities: Array(certificates.dropFirst()),
            certificateSource: source.description, keySource: (key ?? source).description)
    }

    private static func privateKey(
        _ bytes: [UInt8], _ source: String, _ passphrase: SecretBytes?
    ) throws(TLSError) -> PrivateKey {
        switch PEMReader.privateKey(in: bytes, passphrase: passphrase) {
        case .key(let key): return key
        case .passphraseRequired: throw TLSError(.passphraseRequired(source: source))
        case .wrongPassphrase: throw TLSError(.wrongPassphrase(source: source))
        case .failed(let reason): throw TLSError(.identity(reason: reason, source: source))
        }
    }

    private static func bytes(of source: PEMSource) throws(TLSError) -> [UInt8] {
        do throws(SystemError) {
            return try PEMReader.bytes(of: source)
        } catch {
            throw TLSError(.identity(reason: error.description, source: source.description))
        }
    }

    /// Wipes what was read from a file; bytes that the user gave are the user's.
    private static func wipe(_ bytes: inout [UInt8], of source: PEMSource?) {
        guard case .file? = source?.place else { return }
        unsafe bytes.withUnsafeMutableBytes { unsafe OPENSSL_cleanse($0.baseAddress, $0.count) }
    }
}

/// An identity that was read: certificate, key and the authorities between.
struct LoadedIdentity {
    let leaf: Certificate
    let key: PrivateKey
    let authorities: [Certificate]
    /// Where certificate and key came from, for errors.
    let certificateSource: String
    let keySource: String

    /// The same identity, made anew from its bytes; `nil` when that fails.
    func copied() -> LoadedIdentity? {
        let certificates = ([leaf] + authorities).compactMap { certificate in
            PEMReader.certificates(in: unsafe Certificate.der(of: certificate.pointer))?.first
        }
        guard certificates.count == authorities.count + 1, let key = key.copied() else { return nil }
        return LoadedIdentity(
            leaf: certificates[0], key: key, authorities: Array(certificates.dropFirst()),
            certificateSource: certificateSource, keySource: keySource)
    }
}

/// An OpenSSL of its own with the legacy algorithms, so that the one that connections use has none of them. Gone with the
/// object.
@safe package final class LegacyLibrary {
    /// OpenSSL's object.
    package let pointer: OpaquePointer
    private let legacy: OpaquePointer
    private let standard: OpaquePointer

    /// `nil` where the provider is not installed, as in programs that are linked statically.
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

    /// Calls a closure with this library in the place of the usual one, on this thread alone. Nothing that OpenSSL made in
    /// it may be kept for longer than the library.
    func run<Value>(_ body: () -> Value) -> Value {
        let usual = unsafe OSSL_LIB_CTX_set0_default(pointer)
        defer { _ = unsafe OSSL_LIB_CTX_set0_default(usual) }
        return body()
    }
}
