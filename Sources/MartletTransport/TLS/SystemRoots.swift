import CLinux
import COpenSSL
import Glibc
import Synchronization

/// The machine's trusted authorities: where they are, and those that were loaded.
///
/// A program linked statically carries an OpenSSL that was configured elsewhere, so OpenSSL's own places may
/// not exist on this machine; then those of the Linux distributions are looked at.
struct SystemRoots: Sendable {
    /// What was found.
    let store: TrustStore?
    /// A file and folders whose certificates are looked up when wanted.
    let folders: [String]
    /// Every place looked at, for the error when there is nothing.
    let searched: [String]

    /// Whether nothing was found anywhere.
    var isEmpty: Bool { store == nil && folders.isEmpty }

    /// Files of certificates in the distributions: Debian and Arch, Fedora, SUSE, Alpine and the BSDs' way,
    /// OpenWrt.
    static let knownFiles = [
        "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
        "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/pki/tls/cacert.pem",
        "/etc/ssl/cert.pem",
    ]
    /// Folders of certificates named after their hashes.
    static let knownFolders = ["/etc/ssl/certs", "/etc/pki/tls/certs"]

    /// Finds and loads the authorities. Blocks: about 20 ms the first time.
    static func load() -> SystemRoots {
        let file = unsafe place(X509_get_default_cert_file_env(), default: X509_get_default_cert_file())
        let folder = unsafe place(X509_get_default_cert_dir_env(), default: X509_get_default_cert_dir())
        return load(
            file: file.path, folders: folder.path.split(separator: ":").map(String.init),
            isNamedByEnvironment: file.isFromEnvironment || folder.isFromEnvironment)
    }

    /// As ``load()``, with OpenSSL's places given. When the environment named them, no others are looked at.
    static func load(
        file: String, folders: [String], isNamedByEnvironment: Bool, knownFiles: [String] = knownFiles,
        knownFolders: [String] = knownFolders
    ) -> SystemRoots {
        var searched = [file] + folders
        let store = LoadedRoots.store(of: file)
        let hashed = folders.filter(isHashed)
        if store != nil || !hashed.isEmpty || isNamedByEnvironment {
            return SystemRoots(store: store, folders: hashed, searched: searched)
        }
        for known in knownFiles {
            searched.append(known)
            if let store = LoadedRoots.store(of: known) {
                return SystemRoots(store: store, folders: [], searched: searched)
            }
        }
        searched += knownFolders
        return SystemRoots(store: nil, folders: knownFolders.filter(isHashed), searched: searched)
    }

    /// OpenSSL's place, or the one the environment names instead; never from the environment of a set-user-id
    /// program.
    private static func place(
        _ variable: UnsafePointer<CChar>?, default standard: UnsafePointer<CChar>?
    ) -> (path: String, isFromEnvironment: Bool) {
        if let variable = unsafe variable, OPENSSL_issetugid() == 0,
            let value = unsafe getenv(variable), unsafe value.pointee != 0
        {
            return (unsafe String(cString: value), true)
        }
        return (unsafe standard.map { unsafe String(cString: $0) } ?? "", false)
    }

    /// Whether a folder holds at least one file named as OpenSSL looks them up: eight hexadecimal digits, a
    /// dot, digits.
    static func isHashed(_ folder: String) -> Bool {
        guard let directory = unsafe opendir(folder) else { return false }
        defer { unsafe closedir(directory) }
        while let entry = unsafe readdir(directory) {
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                unsafe pointer.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
            }
            let parts = name.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
            guard parts.count == 2, parts[0].count == 8, !parts[1].isEmpty else { continue }
            let hexadecimal = parts[0].allSatisfy { Character(UnicodeScalar($0)).isHexDigit }
            let decimal = parts[1].allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
            if hexadecimal && decimal { return true }
        }
        return false
    }
}

/// Files of roots that were parsed already: a file takes 20 ms and most of a megabyte, and contexts may be
/// many.
private enum LoadedRoots {
    struct Key: Hashable {
        let path: String
        let size: Int
        let modified: Int
        let modifiedNanoseconds: Int
        let inode: UInt
    }

    /// At most a few files; guarded by the mutex.
    static let stores = Mutex<[Key: TrustStore]>([:])

    /// The certificates of a file; `nil` when there are none. Parsed anew when the file has changed.
    static func store(of path: String) -> TrustStore? {
        var status = stat()
        guard unsafe stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        let key = Key(
            path: path, size: Int(status.st_size), modified: Int(status.st_mtim.tv_sec),
            modifiedNanoseconds: Int(status.st_mtim.tv_nsec), inode: UInt(status.st_ino))
        if let store = stores.withLock({ $0[key] }) { return store }
        guard let store = TrustStore() else { return nil }
        OpenSSLErrors.clear()
        _ = unsafe X509_STORE_load_file(store.pointer, path)
        OpenSSLErrors.clear()
        guard store.count > 0 else { return nil }
        // Hundreds of certificates each: they are freed outside of the lock.
        _ = stores.withLock { stores in
            let former = stores
            if stores.count >= 8 { stores.removeAll() }
            stores[key] = store
            return former
        }
        return store
    }
}

/// A set of trusted certificates in OpenSSL's form.
///
/// `@unchecked Sendable`: the pointer is set once; an `X509_STORE` has a lock of its own, and is filled
/// before it is shared.
@safe final class TrustStore: @unchecked Sendable {
    let pointer: OpaquePointer

    /// An empty store; `nil` when there is no memory left.
    init?() {
        guard let pointer = unsafe X509_STORE_new() else { return nil }
        unsafe self.pointer = pointer
    }

    deinit { unsafe X509_STORE_free(pointer) }

    /// Adds a certificate. One that is there already is passed over.
    func add(_ certificate: Certificate) {
        unsafe X509_STORE_add_cert(pointer, certificate.pointer)
        OpenSSLErrors.clear()
    }

    /// Adds the certificates of another store: shared, not copied.
    func add(_ other: TrustStore) {
        let count = unsafe martlet_store_count(other.pointer)
        for index in 0..<max(count, 0) {
            guard let certificate = unsafe martlet_store_certificate(other.pointer, index) else { continue }
            unsafe X509_STORE_add_cert(pointer, certificate)
        }
        OpenSSLErrors.clear()
    }

    /// Adds a revocation list.
    func add(_ list: RevocationList) {
        unsafe X509_STORE_add_crl(pointer, list.pointer)
        OpenSSLErrors.clear()
    }

    /// Has a folder looked at, whose files are named after the hashes of their subjects.
    func addFolder(_ path: String) {
        unsafe X509_STORE_load_path(pointer, path)
        OpenSSLErrors.clear()
    }

    /// How many certificates are loaded; those in folders come only when they are wanted.
    var count: Int { Int(unsafe martlet_store_count(pointer)) }
}
