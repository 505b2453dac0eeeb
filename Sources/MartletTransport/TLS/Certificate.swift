import COpenSSL

/// An X.509 certificate (RFC 5280), owned.
@safe package final class Certificate {
    /// OpenSSL's object.
    package let pointer: OpaquePointer

    /// Takes over a reference.
    package init(owning pointer: OpaquePointer) { unsafe self.pointer = pointer }

    deinit { unsafe X509_free(pointer) }

    /// A certificate's bytes in DER.
    package static func der(of certificate: OpaquePointer) -> [UInt8] {
        var output: UnsafeMutablePointer<UInt8>?
        let count = unsafe i2d_X509(certificate, &output)
        guard count > 0, let output = unsafe output else { return [] }
        defer { unsafe CRYPTO_free(output, nil, 0) }
        return unsafe Array(UnsafeBufferPointer(start: output, count: Int(count)))
    }

    /// SHA-256 of a certificate's DER.
    static func sha256(of certificate: OpaquePointer) -> [UInt8] {
        var output = [UInt8](repeating: 0, count: 32)
        var count: UInt32 = 0
        guard unsafe X509_digest(certificate, EVP_sha256(), &output, &count) == 1, count == 32 else {
            OpenSSLErrors.clear()
            return []
        }
        return output
    }

    /// Whom a certificate is about.
    static func subject(of certificate: OpaquePointer) -> String {
        unsafe text(of: X509_get_subject_name(certificate))
    }

    /// Who signed a certificate.
    static func issuer(of certificate: OpaquePointer) -> String {
        unsafe text(of: X509_get_issuer_name(certificate))
    }

    /// A name as RFC 4514 writes it, control bytes and what is not ASCII escaped.
    private static func text(of name: OpaquePointer?) -> String {
        guard let name = unsafe name else { return "" }
        let text = try? unsafe PEMWriter.text { bio in unsafe martlet_print_name(bio, name) }
        return text ?? ""
    }

    /// The names a certificate is made out to: its alternative names that are hosts or addresses, as text.
    static func names(of certificate: OpaquePointer) -> [String] {
        guard
            let raw = unsafe X509_get_ext_d2i(certificate, NID_subject_alt_name, nil, nil)
        else { return [] }
        let names = OpaquePointer(raw)
        defer { unsafe GENERAL_NAMES_free(names) }
        var texts: [String] = []
        let count = unsafe OPENSSL_sk_num(names)
        for index in 0..<max(count, 0) {
            guard let element = unsafe OPENSSL_sk_value(names, index) else { continue }
            let name = unsafe element.assumingMemoryBound(to: GENERAL_NAME.self)
            var type: Int32 = 0
            guard let value = unsafe GENERAL_NAME_get0_value(name, &type) else { continue }
            guard type == GEN_DNS || type == GEN_IPADD else { continue }
            let string = unsafe value.assumingMemoryBound(to: ASN1_STRING.self)
            let bytes = unsafe UnsafeBufferPointer(
                start: ASN1_STRING_get0_data(string), count: Int(ASN1_STRING_length(string)))
            texts.append(type == GEN_DNS ? printable(unsafe Array(bytes)) : unsafe address(Array(bytes)))
        }
        return texts
    }

    /// Shown to people and written to logs, so control bytes are not passed on.
    private static func printable(_ bytes: [UInt8]) -> String {
        String(
            decoding: bytes.prefix(255).map { (0x21...0x7E).contains($0) ? $0 : UInt8(ascii: "?") },
            as: UTF8.self)
    }

    private static func address(_ bytes: [UInt8]) -> String {
        if bytes.count == 4 { return bytes.map { String($0) }.joined(separator: ".") }
        return IPv6Groups.text(of: bytes)
    }
}

/// The name a client expects its peer to prove: a host name, or an address.
enum PeerName: Equatable {
    /// A host name in ASCII and lower case, without a trailing dot: checked, and sent as SNI (RFC 6066 §3).
    case host(String)
    /// An address: checked, never sent.
    case address(String)

    /// Reads the host part of a URL.
    /// - Returns: `nil` for what is neither a name nor an address, and so could never be verified.
    init?(_ text: String) {
        var name = text
        if name.hasPrefix("["), name.hasSuffix("]") { name = String(name.dropFirst().dropLast()) }
        if SocketAddress(literal: name, port: 0) != nil {
            self = .address(name)
            return
        }
        if name.hasSuffix(".") { name.removeLast() }
        name = name.lowercased()
        let bytes = name.utf8
        // A name that begins with a dot would be taken by OpenSSL for every name that ends so.
        guard (1...253).contains(bytes.count), bytes.first != UInt8(ascii: ".") else { return nil }
        let isHostName = bytes.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
                UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
                true
            default: false
            }
        }
        guard isHostName else { return nil }
        self = .host(name)
    }

    /// The name or the address.
    var text: String {
        switch self {
        case .host(let name), .address(let name): name
        }
    }
}

/// A key, owned: a private one, unless it was read as a public one.
@safe package final class PrivateKey {
    /// OpenSSL's object.
    package let pointer: OpaquePointer

    /// Takes over a reference.
    package init(owning pointer: OpaquePointer) { unsafe self.pointer = pointer }

    deinit { unsafe EVP_PKEY_free(pointer) }

    /// The public key in DER (SubjectPublicKeyInfo).
    var publicBytes: [UInt8] {
        var output: UnsafeMutablePointer<UInt8>?
        let count = unsafe i2d_PUBKEY(pointer, &output)
        guard count > 0, let output = unsafe output else { return [] }
        defer { unsafe CRYPTO_free(output, nil, 0) }
        return unsafe Array(UnsafeBufferPointer(start: output, count: Int(count)))
    }

    /// The same private key, tied to no library but the usual one.
    func copied() -> PrivateKey? {
        var output: UnsafeMutablePointer<UInt8>?
        let count = unsafe i2d_PrivateKey(pointer, &output)
        guard count > 0, let output = unsafe output else { return nil }
        defer { unsafe CRYPTO_clear_free(output, Int(count), nil, 0) }
        var input: UnsafePointer<UInt8>? = unsafe UnsafePointer(output)
        guard let copy = unsafe d2i_AutoPrivateKey(nil, &input, Int(count)) else { return nil }
        return unsafe PrivateKey(owning: copy)
    }
}
