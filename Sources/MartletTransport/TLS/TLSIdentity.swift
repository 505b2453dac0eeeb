import CLinux
import Glibc

/// A certificate and its private key, shown to a peer that asks who is calling.
///
/// Neither the key nor the pass phrase shows in descriptions, mirrors or dumps.
public struct TLSIdentity: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible,
    CustomReflectable
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

    // MARK: Read by the first connection

    /// An identity in PEM or DER, read on a thread of its own when a connection first needs it; what is wrong with it is
    /// told then.
    /// - Parameters:
    ///   - certificateChain: The leaf certificate first, then the authorities between it and the root.
    ///   - privateKey: The private key (PKCS#8 or traditional); `nil` when it is in the same text as the certificates.
    ///   - passphrase: What an encrypted private key is opened with. Nobody is ever asked for it on the terminal.
    public init(certificateChain: PEMSource, privateKey: PEMSource? = nil, passphrase: String? = nil) {
        self.init(.pem(certificates: certificateChain, key: privateKey), passphrase)
    }

    /// An identity in a PKCS#12 file (RFC 7292), read when a connection first needs it.
    /// - Parameter passphrase: What the file is opened with; `nil` and an empty one open the same files.
    public init(pkcs12: PEMSource, passphrase: String? = nil) { self.init(.pkcs12(pkcs12), passphrase) }

    // MARK: Read at once

    /// An identity from PEM or DER files, which are read and checked at once: on the calling thread, for milliseconds.
    /// - Throws: ``TLSError`` of kind `.identity`, `.passphraseRequired` or `.wrongPassphrase`, which names the file.
    public static func pem(
        certificates: String, key: String? = nil, passphrase: String? = nil
    ) throws(TLSError) -> TLSIdentity {
        try TLSIdentity(
            certificateChain: .file(certificates), privateKey: key.map { .file($0) }, passphrase: passphrase
        ).checked()
    }

    /// An identity from a PKCS#12 file, which is read and checked at once: on the calling thread, for milliseconds.
    ///
    /// Files of old programs (RC2, DES) need OpenSSL's legacy provider; where it is missing the error says so.
    /// - Throws: ``TLSError`` of kind `.identity`, `.passphraseRequired` or `.wrongPassphrase`, which names the file.
    public static func pkcs12(file: String, passphrase: String? = nil) throws(TLSError) -> TLSIdentity {
        try TLSIdentity(pkcs12: .file(file), passphrase: passphrase).checked()
    }

    /// An identity from the bytes of a PKCS#12 file; else as ``pkcs12(file:passphrase:)``.
    public static func pkcs12(bytes: [UInt8], passphrase: String? = nil) throws(TLSError) -> TLSIdentity {
        try TLSIdentity(pkcs12: .bytes(bytes), passphrase: passphrase).checked()
    }

    private func checked() throws(TLSError) -> TLSIdentity {
        _ = try IdentityReader.load(self)
        return self
    }

    /// Reads and checks the identity on a thread of its own, so that the caller's executor is not held up.
    ///
    /// Cancelling does not end it; it takes milliseconds.
    /// - Throws: ``TLSError`` of kind `.identity`, `.passphraseRequired` or `.wrongPassphrase`, which names the file.
    public func check() async throws(TLSError) {
        let identity = self
        let fault = await BlockingWorkers.shared.run { () -> TLSError? in
            do throws(TLSError) {
                _ = try IdentityReader.load(identity)
                return nil
            } catch {
                return error
            }
        }
        if let fault { throw fault }
    }

    // MARK: In words

    /// Where certificates and key come from, without the pass phrase.
    public var description: String {
        switch material {
        case .pem(let certificates, let key):
            "certificates from \(certificates), key from \(key ?? certificates)"
        case .pkcs12(let source): "PKCS#12 from \(source)"
        }
    }

    /// As ``description``.
    public var debugDescription: String { description }

    /// Shows the description alone.
    public var customMirror: Mirror { Mirror(self, children: ["source": description]) }
}

/// The file that connections' secrets are appended to, in the NSS key log format.
package final class KeyLogFile: Sendable {
    private let descriptor: Int32

    /// Opens the file for appending, or makes it with mode 0600.
    init(path: String) throws(SystemError) {
        let opened = unsafe open(
            path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0o600)
        guard opened >= 0 else { throw SystemError(operation: "open", code: errno) }
        // Writing to a pipe that nobody reads would end the process with SIGPIPE.
        var status = stat()
        let kind = unsafe fstat(opened, &status) == 0 ? status.st_mode & S_IFMT : 0
        guard kind == S_IFREG || kind == S_IFCHR else {
            close(opened)
            throw SystemError(operation: "open", code: EINVAL)
        }
        descriptor = opened
    }

    /// Why a file cannot be appended to; `nil` where it can. Makes it where there is none.
    package static func fault(at path: String) -> SystemError? {
        do throws(SystemError) {
            _ = try KeyLogFile(path: path)
            return nil
        } catch {
            return error
        }
    }

    deinit { close(descriptor) }

    /// Appends a line in one call, so that lines of several processes do not mix. A full disk costs the line
    /// alone.
    func append(_ line: String) {
        let bytes = Array(line.utf8) + [UInt8(ascii: "\n")]
        _ = Socket.retrying { unsafe write(descriptor, bytes, bytes.count) }
    }
}
