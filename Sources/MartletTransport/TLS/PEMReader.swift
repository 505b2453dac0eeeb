import COpenSSL
import Glibc

/// Reads certificates and keys from PEM text.
enum PEMReader {
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
        var chunk = [UInt8](repeating: 0, count: 64 << 10)
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
    static func certificates(in bytes: [UInt8]) -> [Certificate]? {
        OpenSSLErrors.clear()
        let found = unsafe withMemory(bytes) { bio -> [Certificate]? in
            var found: [Certificate] = []
            while let certificate = unsafe PEM_read_bio_X509_AUX(bio, nil, refusePassphrase, nil) {
                found.append(unsafe Certificate(owning: certificate))
            }
            // The search for one more ends with "no start line"; anything else is damage.
            let code = ERR_peek_last_error()
            let isEnd = ERR_GET_LIB(code) == Int32(ERR_LIB_PEM) && ERR_GET_REASON(code) == PEM_R_NO_START_LINE
            return isEnd ? found : nil
        }
        OpenSSLErrors.clear()
        return found ?? nil
    }

    /// How the reading of a private key ended.
    enum KeyResult {
        case key(PrivateKey)
        case failed(String)
    }

    /// The first private key of a text.
    static func privateKey(in bytes: [UInt8], passphrase: String?) -> KeyResult {
        OpenSSLErrors.clear()
        let request = PassphraseRequest(passphrase)
        let key = unsafe withMemory(bytes) { bio in
            unsafe PEM_read_bio_PrivateKey(
                bio, nil, givePassphrase, Unmanaged.passUnretained(request).toOpaque())
        }
        let errors = OpenSSLErrors.drain()
        if let key = unsafe key ?? nil { return .key(unsafe PrivateKey(owning: key)) }
        if request.wasAsked {
            return .failed(
                passphrase == nil
                    ? "the private key is encrypted and no pass phrase was given"
                    : "the pass phrase does not open the private key (\(errors.text))")
        }
        return .failed("no readable private key in it (\(errors.text))")
    }
}

/// A pass phrase that OpenSSL may ask for, and whether it did.
private final class PassphraseRequest {
    let passphrase: [UInt8]
    let isGiven: Bool
    var wasAsked = false

    init(_ passphrase: String?) {
        self.passphrase = Array((passphrase ?? "").utf8)
        isGiven = passphrase != nil
    }
}

/// OpenSSL would ask on the terminal if it had no callback.
private func refusePassphrase(
    _: UnsafeMutablePointer<CChar>?, _: Int32, _: Int32, _: UnsafeMutableRawPointer?
) -> Int32 {
    -1
}

private func givePassphrase(
    _ buffer: UnsafeMutablePointer<CChar>?, _ capacity: Int32, _: Int32, _ context: UnsafeMutableRawPointer?
) -> Int32 {
    guard let buffer = unsafe buffer, let context = unsafe context else { return -1 }
    let request = unsafe Unmanaged<PassphraseRequest>.fromOpaque(context).takeUnretainedValue()
    request.wasAsked = true
    guard request.isGiven, request.passphrase.count <= Int(capacity) else { return -1 }
    unsafe UnsafeMutableRawPointer(buffer).copyMemory(
        from: request.passphrase, byteCount: request.passphrase.count)
    return Int32(request.passphrase.count)
}
