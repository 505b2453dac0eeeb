import CMartletLinux
import CMartletOpenSSL
import Glibc
import Synchronization

/// The machine's trusted authorities: the loaded certificates, and the searched paths. A statically linked program
/// contains an OpenSSL that was configured for another system, so its default paths may not exist here. Then the paths
/// of common distributions are searched.
struct SystemRoots: Sendable {
    /// The certificates of a file.
    let store: TrustStore?
    /// Directories whose certificates are loaded when they are needed.
    let directories: [String]
    /// All searched paths, for the error if nothing was found.
    let searched: [String]

    var isEmpty: Bool { store == nil && directories.isEmpty }

    /// The certificate files of Debian and Arch, Fedora, older Red Hat systems, SUSE, OpenELEC, and of Alpine and BSDs.
    static let knownFiles = [
        "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
        "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/pki/tls/cacert.pem", "/etc/ssl/cert.pem",
    ]
    /// Directories of certificates named after their hashes.
    static let knownDirectories = ["/etc/ssl/certs", "/etc/pki/tls/certs"]

    /// Finds and loads the authorities. Blocks: about 20 ms the first time.
    static func load() -> SystemRoots {
        let file = unsafe path(X509_get_default_cert_file_env(), default: X509_get_default_cert_file())
        let directory = unsafe path(X509_get_default_cert_dir_env(), default: X509_get_default_cert_dir())
        return load(
            file: file.path, directories: directory.path.split(separator: ":").map(String.init),
            isNamedByEnvironment: file.isFromEnvironment || directory.isFromEnvironment)
    }

    /// The files that ``load()`` may read.
    static var files: [String] {
        let file = unsafe path(X509_get_default_cert_file_env(), default: X509_get_default_cert_file())
        return file.isFromEnvironment ? [file.path] : [file.path] + knownFiles
    }

    /// Loads authorities like ``load()``, from given default paths. If the environment named them, no others are used.
    static func load(
        file: String, directories: [String], isNamedByEnvironment: Bool, knownFiles: [String] = knownFiles,
        knownDirectories: [String] = knownDirectories
    ) -> SystemRoots {
        var searched = [file] + directories
        let store = LoadedRoots.store(of: file)
        let hashed = directories.filter(isHashed)
        if store != nil || !hashed.isEmpty || isNamedByEnvironment {
            return SystemRoots(store: store, directories: hashed, searched: searched)
        }
        for known in knownFiles {
            searched.append(known)
            if let store = LoadedRoots.store(of: known) {
                return SystemRoots(store: store, directories: [], searched: searched)
            }
        }
        searched += knownDirectories
        return SystemRoots(store: nil, directories: knownDirectories.filter(isHashed), searched: searched)
    }

    /// Returns OpenSSL's default path, or that in the environment, which is ignored in a set-user-id program.
    private static func path(_ variable: UnsafePointer<CChar>?, default standard: UnsafePointer<CChar>?) -> (
        path: String, isFromEnvironment: Bool
    ) {
        if let variable = unsafe variable, OPENSSL_issetugid() == 0,
            let value = unsafe ProcessEnvironment.value(of: String(cString: variable))
        {
            return (value, true)
        }
        return (unsafe standard.map { unsafe String(cString: $0) } ?? "", false)
    }

    /// Whether a directory contains a file with a name that OpenSSL looks up: eight hexadecimal digits, a dot, digits.
    static func isHashed(_ directory: String) -> Bool {
        guard let stream = unsafe opendir(directory) else { return false }
        defer { unsafe closedir(stream) }
        while let entry = unsafe readdir(stream) {
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                unsafe pointer.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
            }
            let parts = name.split(separator: ".", omittingEmptySubsequences: false)
            if parts.count == 2, parts[0].utf8.count == 8, !parts[1].isEmpty,
                parts[0].utf8.allSatisfy({ Character(UnicodeScalar($0)).isHexDigit }),
                parts[1].utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
            {
                return true
            }
        }
        return false
    }
}

/// The parsed root files. Parsing one takes 20 ms and most of a megabyte, so all contexts share the result.
private enum LoadedRoots {
    struct Key: Hashable {
        let path: String
        let version: SystemFile.Version
    }

    /// Guards the stores of at most eight files.
    static let stores = Mutex<[Key: TrustStore]>([:])

    /// The certificates of a file; `nil` if it contains no certificate. A changed file is parsed again.
    static func store(of path: String) -> TrustStore? {
        guard let version = SystemFile.Version(of: path) else { return nil }
        let key = Key(path: path, version: version)
        if let store = stores.withLock({ $0[key] }) { return store }
        guard let store = TrustStore() else { return nil }
        OpenSSLErrors.clear()
        _ = unsafe X509_STORE_load_file(store.pointer, path)
        OpenSSLErrors.clear()
        guard store.count > 0 else { return nil }
        // Stores with hundreds of certificates are freed outside of the lock.
        _ = stores.withLock { stores in
            let former = stores
            if stores.count >= 8 { stores.removeAll() }
            stores[key] = store
            return former
        }
        return store
    }
}

/// A set of trusted certificates in OpenSSL's form. `@unchecked Sendable`: the pointer is set once; an `X509_STORE` has
/// its own lock, and is filled before it is shared.
@safe final class TrustStore: @unchecked Sendable {
    let pointer: OpaquePointer

    /// Creates an empty store; `nil` if memory is exhausted.
    init?() {
        guard let pointer = unsafe X509_STORE_new() else { return nil }
        unsafe self.pointer = pointer
    }

    deinit { unsafe X509_STORE_free(pointer) }

    /// Adds a certificate, unless the store contains it.
    func add(_ certificate: Certificate) {
        unsafe X509_STORE_add_cert(pointer, certificate.pointer)
        OpenSSLErrors.clear()
    }

    /// Adds the certificates of another store, which then share their memory.
    func add(_ other: TrustStore) {
        for index in 0..<max(unsafe martlet_store_count(other.pointer), 0) {
            guard let certificate = unsafe martlet_store_certificate(other.pointer, index) else { continue }
            unsafe X509_STORE_add_cert(pointer, certificate)
        }
        OpenSSLErrors.clear()
    }

    func add(_ list: RevocationList) {
        unsafe X509_STORE_add_crl(pointer, list.pointer)
        OpenSSLErrors.clear()
    }

    /// Adds a directory whose files are named after the hashes of their subjects.
    func addDirectory(_ path: String) {
        unsafe X509_STORE_load_path(pointer, path)
        OpenSSLErrors.clear()
    }

    /// The number of loaded certificates; those of directories are loaded when they are needed.
    var count: Int { Int(unsafe martlet_store_count(pointer)) }
}
