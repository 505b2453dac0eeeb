import CMartletOpenSSL

/// The source of certificates, keys or revocation lists: PEM text (RFC 7468) with any number of them, or one in DER.
public struct PEMSource: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    enum Storage: Hashable, Sendable {
        case file(String)
        case bytes([UInt8])
    }

    let storage: Storage

    /// A file, read when a connection first needs it, and again if it has changed when a later connection is opened. A
    /// session checks that at most once a second. If a changed file cannot be used, its former content is used for ten
    /// seconds; then opening a connection fails with the error. After a file is removed, its former content is used.
    /// - Parameter path: The path, absolute or relative to the working directory.
    public static func file(_ path: String) -> PEMSource { PEMSource(storage: .file(path)) }

    /// A file of certificates, read immediately on the calling thread.
    /// - Throws: ``TLSError`` of kind `.rootCertificates`, which names the file and the damaged certificate.
    public static func pem(file path: String) throws(TLSError) -> PEMSource {
        let source = file(path)
        _ = try PEMParser.certificates(of: source)
        return .bytes(try source.bytes(TLSError.Kind.rootCertificates))
    }

    /// PEM text in memory.
    public static func text(_ text: String) -> PEMSource { .bytes(Array(text.utf8)) }

    /// PEM text, or DER, in memory.
    public static func bytes(_ bytes: [UInt8]) -> PEMSource { PEMSource(storage: .bytes(bytes)) }

    /// The path of a file; `nil` for bytes in memory.
    var path: String? { if case .file(let path) = storage { path } else { nil } }

    /// Returns the bytes. A file, of at most 64 MiB, is read on the calling thread.
    /// - Parameter makeError: Makes the error from a reason and a source, if the file cannot be read.
    func bytes(_ makeError: (_ reason: String, _ source: String) -> TLSError.Kind) throws(TLSError) -> [UInt8] {
        switch storage {
        case .bytes(let bytes): return bytes
        case .file(let path):
            do throws(SystemError) { return try SystemFile.contents(of: path, limit: 64 << 20) } catch {
                throw TLSError(makeError(error.description, description))
            }
        }
    }

    /// The file's path, or the size of the text in memory. The text itself is never shown: it may be a private key.
    public var description: String {
        switch storage {
        case .file(let path): path
        case .bytes(let bytes): "PEM text of \(bytes.count) bytes"
        }
    }

    /// The same text as ``description``.
    public var debugDescription: String { description }

    /// A mirror of ``description`` only.
    public var customMirror: Mirror { Mirror(self, children: ["source": description]) }
}

/// Parses certificates and keys in PEM and DER.
package enum PEMParser {
    /// Calls a closure with a BIO that reads from memory.
    static func withMemory<Value>(_ bytes: [UInt8], _ body: (OpaquePointer) -> Value) -> Value? {
        unsafe bytes.withUnsafeBytes { raw -> Value? in
            guard let bio = unsafe BIO_new_mem_buf(raw.baseAddress, Int32(clamping: raw.count)) else { return nil }
            defer { unsafe BIO_free(bio) }
            return unsafe body(bio)
        }
    }

    /// The certificates of a text, or the one of a DER file; `nil` if one is damaged.
    package static func certificates(in bytes: [UInt8]) -> [Certificate]? { try? readCertificates(in: bytes) }

    /// The trusted or pinned certificates of a source, at least one.
    static func certificates(of source: PEMSource) throws(TLSError) -> [Certificate] {
        try objects(
            of: source, makeError: TLSError.Kind.rootCertificates, none: "it has no readable certificate",
            readCertificates)
    }

    /// The revocation lists of a source, at least one.
    static func revocationLists(of source: PEMSource) throws(TLSError) -> [RevocationList] {
        try objects(of: source, makeError: TLSError.Kind.revocationList, none: "it has no revocation list") {
            bytes throws(PEMError) in
            try unsafe objects(
                in: bytes, "revocation list", markers: ["-----BEGIN X509 CRL-----"],
                der: { unsafe d2i_X509_CRL_bio($0, nil) },
                pem: { unsafe PEM_read_bio_X509_CRL($0, nil, declinePassphrase, nil) },
                own: { unsafe RevocationList(owning: $0) })
        }
    }

    /// The objects of a source, at least one.
    /// - Parameters:
    ///   - makeError: Makes an error from a reason and a source.
    ///   - none: The reason in the error if the source contains no object.
    private static func objects<Object>(
        of source: PEMSource, makeError: (String, String) -> TLSError.Kind, none: String,
        _ read: ([UInt8]) throws(PEMError) -> [Object]
    ) throws(TLSError) -> [Object] {
        let bytes = try source.bytes(makeError)
        var reason = none
        do throws(PEMError) {
            let found = try read(bytes)
            if !found.isEmpty { return found }
        } catch { reason = error.description }
        throw TLSError(makeError(reason, source.description))
    }

    /// The certificates of a text, or the one of a DER file.
    static func readCertificates(in bytes: [UInt8]) throws(PEMError) -> [Certificate] {
        try unsafe objects(
            in: bytes, "certificate",
            markers: [
                "-----BEGIN CERTIFICATE-----", "-----BEGIN X509 CERTIFICATE-----",
                "-----BEGIN TRUSTED CERTIFICATE-----",
            ], der: { unsafe d2i_X509_bio($0, nil) },
            pem: { unsafe PEM_read_bio_X509_AUX($0, nil, declinePassphrase, nil) },
            own: { unsafe Certificate(owning: $0) })
    }

    /// The objects of a text, or the one of a DER file.
    /// - Parameters:
    ///   - der: Reads an object in DER.
    ///   - pem: Reads the next object of a text.
    ///   - own: Creates the owner of an object.
    private static func objects<Object>(
        in bytes: [UInt8], _ what: String, markers: [String], der: (OpaquePointer) -> OpaquePointer?,
        pem: (OpaquePointer) -> OpaquePointer?, own: (OpaquePointer) -> Object
    ) throws(PEMError) -> [Object] {
        if isDER(bytes) {
            let one = unsafe withMemory(bytes) { bio in unsafe der(bio) }
            guard let object = unsafe one ?? nil else { throw PEMError(what: what, reason: OpenSSLErrors.drain().text) }
            return [unsafe own(object)]
        }
        OpenSSLErrors.clear()
        var found: [Object] = []
        let isWhole = unsafe withMemory(bytes) { bio -> Bool in
            while let object = unsafe pem(bio) { found.append(unsafe own(object)) }
            // The search for another object ends with "no start line"; any other error means damaged input.
            let code = ERR_peek_last_error()
            return ERR_GET_LIB(code) == Int32(ERR_LIB_PEM) && ERR_GET_REASON(code) == PEM_R_NO_START_LINE
        }
        let reason = OpenSSLErrors.drain().text
        guard isWhole ?? false else {
            let line = line(of: found.count, markers, in: bytes)
            throw PEMError(what: what, number: found.count + 1, line: line, reason: reason)
        }
        return found
    }

    /// The first public key of a text or DER file.
    static func publicKey(in bytes: [UInt8]) -> PrivateKey? {
        OpenSSLErrors.clear()
        defer { OpenSSLErrors.clear() }
        let isDER = isDER(bytes)
        let key = unsafe withMemory(bytes) { bio in
            unsafe isDER ? d2i_PUBKEY_bio(bio, nil) : PEM_read_bio_PUBKEY(bio, nil, declinePassphrase, nil)
        }
        return unsafe (key ?? nil).map { unsafe PrivateKey(owning: $0) }
    }

    /// Whether bytes are one object in DER, which begins with the tag of a sequence: `0` in ASCII. If the length byte
    /// is ASCII, too, the bytes may be PEM: they are DER only if the length matches, or if they have no hyphen.
    private static func isDER(_ bytes: [UInt8]) -> Bool {
        OpenSSLErrors.clear()
        guard bytes.count > 2, bytes[0] == 0x30 else { return false }
        return bytes[1] >= 0x80 || bytes.count == 2 + Int(bytes[1])
            || !bytes.starts(with: "00".utf8) && !bytes.prefix(4096).contains(UInt8(ascii: "-"))
    }

    /// The line, counted from 1, on which an object begins. The objects are counted from 0.
    private static func line(of number: Int, _ markers: [String], in bytes: [UInt8]) -> Int? {
        let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        let beginnings = lines.indices.lazy.filter { index in markers.contains { lines[index].starts(with: $0.utf8) } }
        return beginnings.dropFirst(number).first.map { $0 + 1 }
    }

    enum KeyResult {
        case key(PrivateKey)
        /// The key is encrypted, and there is no pass phrase.
        case passphraseRequired
        case wrongPassphrase
        case failed(String)
    }

    /// The first private key of a text, or the one of a DER file; `nil` without a readable, unencrypted key.
    package static func privateKey(in bytes: [UInt8]) -> PrivateKey? {
        if case .key(let key) = privateKey(in: bytes, passphrase: nil) { key } else { nil }
    }

    /// The first private key of a text, or the one of a DER file.
    static func privateKey(in bytes: [UInt8], passphrase: SecretBytes?) -> KeyResult {
        let isDER = isDER(bytes)
        OpenSSLErrors.clear()
        let request = PassphraseRequest(passphrase)
        let key = unsafe withMemory(bytes) { bio -> OpaquePointer? in
            let context = unsafe Unmanaged.passUnretained(request).toOpaque()
            guard isDER else { return unsafe PEM_read_bio_PrivateKey(bio, nil, givePassphrase, context) }
            if let key = unsafe d2i_PrivateKey_bio(bio, nil) { return unsafe key }
            unsafe martlet_bio_rewind(bio)
            return unsafe d2i_PKCS8PrivateKey_bio(bio, nil, givePassphrase, context)
        }
        let errors = OpenSSLErrors.drain()
        if let key = unsafe key ?? nil { return .key(unsafe PrivateKey(owning: key)) }
        if errors.isUnsupportedAlgorithm, passphrase != nil {
            return .failed("the private key is encrypted by a method that this OpenSSL does not have (\(errors.text))")
        }
        if request.wasAsked { return passphrase == nil ? .passphraseRequired : .wrongPassphrase }
        return .failed("it has no readable private key (\(errors.text))")
    }
}

/// A pass phrase that OpenSSL may request, and whether it did.
private final class PassphraseRequest {
    let passphrase: SecretBytes?
    var wasAsked = false

    init(_ passphrase: SecretBytes?) { self.passphrase = passphrase }
}

/// Gives no pass phrase. Without a callback OpenSSL would ask for it on the terminal.
private func declinePassphrase(_: UnsafeMutablePointer<CChar>?, _: Int32, _: Int32, _: UnsafeMutableRawPointer?)
    -> Int32
{ -1 }

private func givePassphrase(
    _ buffer: UnsafeMutablePointer<CChar>?, _ capacity: Int32, _: Int32, _ context: UnsafeMutableRawPointer?
) -> Int32 {
    guard let buffer = unsafe buffer, let context = unsafe context else { return -1 }
    let request = unsafe Unmanaged<PassphraseRequest>.fromOpaque(context).takeUnretainedValue()
    request.wasAsked = true
    guard let passphrase = request.passphrase, passphrase.count <= Int(capacity) else { return -1 }
    unsafe passphrase.withCString { text in
        unsafe UnsafeMutableRawPointer(buffer).copyMemory(from: text, byteCount: passphrase.count)
    }
    return Int32(passphrase.count)
}

struct PEMError: Error, CustomStringConvertible {
    /// The kind of object, for error messages; for example "certificate".
    let what: String
    /// The number of the object in the text, counted from 1.
    var number = 1
    /// The line on which the object begins.
    var line: Int?
    let reason: String

    var description: String {
        let position = line.map { " (line \($0))" } ?? ""
        return "\(what) \(number)\(position) is damaged: \(reason)"
    }
}

/// A collector of text that OpenSSL writes to a BIO, such as PEM.
package enum PEMWriter {
    /// The text that a closure writes to a BIO in memory.
    /// - Parameter write: Returns 1 on success.
    package static func text(_ write: (OpaquePointer) -> Int32) throws(TLSError) -> String {
        OpenSSLErrors.clear()
        let bio = unsafe BIO_new(BIO_s_mem())
        defer { unsafe BIO_free(bio) }
        guard let bio = unsafe bio, unsafe write(bio) == 1 else {
            throw TLSError(.configuration(reason: OpenSSLErrors.drain().text))
        }
        var data: UnsafeMutablePointer<CChar>?
        let count = unsafe martlet_bio_memory(bio, &data)
        guard let data = unsafe data, count > 0 else { return "" }
        return unsafe String(decoding: UnsafeRawBufferPointer(start: data, count: Int(count)), as: UTF8.self)
    }
}
