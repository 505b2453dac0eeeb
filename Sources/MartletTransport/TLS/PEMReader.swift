import COpenSSL
import Glibc

/// Reads certificates and keys from PEM text.
package enum PEMReader {
    /// The source's bytes.
    /// - Throws: The system's error when the file cannot be read.
    static func bytes(of source: PEMSource) throws(SystemError) -> [UInt8] {
        switch source.place {
        case .bytes(let bytes): return bytes
        case .file(let path): return try contents(of: path)
        }
    }

    /// A file's contents; bounded, so that a path such as `/dev/zero` is no way to use up the memory.
    private static func contents(of path: String) throws(SystemError) -> [UInt8] {
        let limit = 64 << 20
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw SystemError(operation: "open", code: errno) }
        defer { close(descriptor) }
        var contents: [UInt8] = []
        // Enough for a private key, so that its bytes are not left behind where they were before.
        contents.reserveCapacity(64 << 10)
        var chunk = [UInt8](repeating: 0, count: 64 << 10)
        defer { unsafe chunk.withUnsafeMutableBytes { unsafe OPENSSL_cleanse($0.baseAddress, $0.count) } }
        while true {
            let (count, code) = Socket.retrying {
                unsafe chunk.withUnsafeMutableBytes { unsafe read(descriptor, $0.baseAddress, $0.count) }
            }
            if count < 0 { throw SystemError(operation: "read", code: code) }
            if count == 0 { return contents }
            contents += chunk[..<count]
            if contents.count > limit { throw SystemError(operation: "read", code: EFBIG) }
        }
    }

    /// Calls a closure with a BIO that reads from memory.
    static func withMemory<Value>(_ bytes: [UInt8], _ body: (OpaquePointer) -> Value) -> Value? {
        unsafe bytes.withUnsafeBytes { raw -> Value? in
            guard let bio = unsafe BIO_new_mem_buf(raw.baseAddress, Int32(clamping: raw.count)) else {
                return nil
            }
            defer { unsafe BIO_free(bio) }
            return unsafe body(bio)
        }
    }

    /// The certificates of a text, each owned by the caller.
    /// - Returns: `nil` when one of them is damaged.
    package static func certificates(in bytes: [UInt8]) -> [Certificate]? { try? readCertificates(in: bytes) }

    /// The certificates of a source that are to be trusted, at least one.
    static func certificates(of source: PEMSource) throws(TLSError) -> [Certificate] {
        try objects(
            of: source, fault: TLSError.Kind.rootCertificates, none: "no readable certificate in it",
            readCertificates)
    }

    /// The objects of a source, at least one.
    /// - Parameters:
    ///   - fault: Makes an error of a reason and a source.
    ///   - none: The reason where there is no object.
    static func objects<Object>(
        of source: PEMSource, fault: (String, String) -> TLSError.Kind, none: String,
        _ read: ([UInt8]) throws(PEMFault) -> [Object]
    ) throws(TLSError) -> [Object] {
        let reason: String
        do {
            let found = try read(try bytes(of: source))
            if !found.isEmpty { return found }
            reason = none
        } catch {
            reason = "\(error)"
        }
        throw TLSError(fault(reason, source.description))
    }

    /// The certificates of a text, or the one of a DER file, each owned by the caller.
    static func readCertificates(in bytes: [UInt8]) throws(PEMFault) -> [Certificate] {
        try unsafe objects(
            in: bytes, "certificate",
            markers: [
                "-----BEGIN CERTIFICATE-----", "-----BEGIN X509 CERTIFICATE-----",
                "-----BEGIN TRUSTED CERTIFICATE-----",
            ], der: { unsafe d2i_X509_bio($0, nil) },
            pem: { unsafe PEM_read_bio_X509_AUX($0, nil, refusePassphrase, nil) },
            own: { unsafe Certificate(owning: $0) })
    }

    /// The revocation lists of a text, or the one of a DER file.
    static func revocationLists(in bytes: [UInt8]) throws(PEMFault) -> [RevocationList] {
        try unsafe objects(
            in: bytes, "revocation list", markers: ["-----BEGIN X509 CRL-----"],
            der: { unsafe d2i_X509_CRL_bio($0, nil) },
            pem: { unsafe PEM_read_bio_X509_CRL($0, nil, refusePassphrase, nil) },
            own: { unsafe RevocationList(owning: $0) })
    }

    /// The objects of a text, or the one of a DER file.
    /// - Parameters:
    ///   - der: Reads one in DER.
    ///   - pem: Reads the next one of a text.
    ///   - own: Takes over what was read.
    private static func objects<Object>(
        in bytes: [UInt8], _ what: String, markers: [String], der: (OpaquePointer) -> OpaquePointer?,
        pem: (OpaquePointer) -> OpaquePointer?, own: (OpaquePointer) -> Object
    ) throws(PEMFault) -> [Object] {
        if isDER(bytes) {
            let one = unsafe withMemory(bytes) { bio in unsafe der(bio) }
            guard let object = unsafe one ?? nil else {
                throw PEMFault(what: what, reason: OpenSSLErrors.drain().text)
            }
            return [unsafe own(object)]
        }
        var found: [Object] = []
        try unsafe eachObject(in: bytes, what, markers: markers) { bio in
            guard let object = unsafe pem(bio) else { return false }
            found.append(unsafe own(object))
            return true
        }
        return found
    }

    /// The first public key of a text or DER file.
    static func publicKey(in bytes: [UInt8]) -> PrivateKey? {
        OpenSSLErrors.clear()
        defer { OpenSSLErrors.clear() }
        let isDER = isDER(bytes)
        let key = unsafe withMemory(bytes) { bio in
            unsafe isDER ? d2i_PUBKEY_bio(bio, nil) : PEM_read_bio_PUBKEY(bio, nil, refusePassphrase, nil)
        }
        return unsafe (key ?? nil).map { unsafe PrivateKey(owning: $0) }
    }

    /// Whether bytes are one object in DER, as every certificate, key and list is: a sequence. That of a small key begins
    /// with two letters, as a text may, and so has to be as long as it says, or to have no hyphen.
    private static func isDER(_ bytes: [UInt8]) -> Bool {
        OpenSSLErrors.clear()
        guard bytes.count > 2, bytes[0] == 0x30 else { return false }
        return bytes[1] >= 0x80 || bytes.count == 2 + Int(bytes[1])
            || !bytes.starts(with: "00".utf8) && !bytes.prefix(4096).contains(UInt8(ascii: "-"))
    }

    /// Has each object of a kind read, until there is none left.
    /// - Parameter read: Whether it could read one.
    private static func eachObject(
        in bytes: [UInt8], _ what: String, markers: [String], _ read: (OpaquePointer) -> Bool
    ) throws(PEMFault) {
        OpenSSLErrors.clear()
        var count = 0
        let isWhole = unsafe withMemory(bytes) { bio -> Bool in
            while unsafe read(bio) { count += 1 }
            // The search for one more ends with "no start line"; anything else is damage.
            let code = ERR_peek_last_error()
            return ERR_GET_LIB(code) == Int32(ERR_LIB_PEM) && ERR_GET_REASON(code) == PEM_R_NO_START_LINE
        }
        let reason = OpenSSLErrors.drain().text
        guard isWhole ?? false else {
            throw PEMFault(
                what: what, number: count + 1, line: line(of: count, markers, in: bytes), reason: reason)
        }
    }

    /// The line, counted from 1, on which the object of a number (counted from 0) begins.
    private static func line(of number: Int, _ markers: [String], in bytes: [UInt8]) -> Int? {
        var seen = 0
        var index = 0
        for line in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
            index += 1
            guard markers.contains(where: { line.starts(with: $0.utf8) }) else { continue }
            if seen == number { return index }
            seen += 1
        }
        return nil
    }

    /// How the reading of a private key ended.
    enum KeyResult {
        case key(PrivateKey)
        /// It is encrypted, and no pass phrase was given.
        case passphraseRequired
        case wrongPassphrase
        case failed(String)
    }

    /// The first private key of a text, or the one of a DER file; `nil` where there is none that is readable and not
    /// encrypted.
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
            return .failed(
                "the private key is encrypted by a method that this OpenSSL does not have (\(errors.text))")
        }
        if request.wasAsked { return passphrase == nil ? .passphraseRequired : .wrongPassphrase }
        return .failed("no readable private key in it (\(errors.text))")
    }
}

/// A pass phrase that OpenSSL may ask for, and whether it did.
private final class PassphraseRequest {
    let passphrase: SecretBytes?
    var wasAsked = false

    init(_ passphrase: SecretBytes?) { self.passphrase = passphrase }
}

/// OpenSSL would ask on the terminal if it had no callback.
private func refusePassphrase(
    _: UnsafeMutablePointer<CChar>?, _: Int32, _: Int32, _: UnsafeMutableRawPointer?
) -> Int32 { -1 }

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

/// A damaged object in a file.
struct PEMFault: Error, CustomStringConvertible {
    /// Such as "certificate".
    let what: String
    /// Which of them, counted from 1.
    var number = 1
    /// The line it begins on.
    var line: Int?
    let reason: String

    var description: String {
        let place = line.map { " (line \($0))" } ?? ""
        return "\(what) \(number)\(place) is damaged: \(reason)"
    }
}

/// Writes what OpenSSL writes to a BIO as text, such as PEM.
package enum PEMWriter {
    /// The text that a closure writes to a BIO in memory.
    /// - Parameter write: Gives 1 when it could write.
    package static func text(_ write: (OpaquePointer) -> Int32) throws(TLSError) -> String {
        OpenSSLErrors.clear()
        guard let bio = unsafe BIO_new(BIO_s_mem()) else {
            throw TLSError(.configuration(reason: OpenSSLErrors.drain().text))
        }
        defer { unsafe BIO_free(bio) }
        guard unsafe write(bio) == 1 else {
            throw TLSError(.configuration(reason: OpenSSLErrors.drain().text))
        }
        var data: UnsafeMutablePointer<CChar>?
        let count = unsafe martlet_bio_memory(bio, &data)
        guard let data = unsafe data, count > 0 else { return "" }
        return unsafe String(decoding: UnsafeRawBufferPointer(start: data, count: Int(count)), as: UTF8.self)
    }
}
