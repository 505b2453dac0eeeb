import CMartletOpenSSL
import Glibc

/// An X.509 certificate (RFC 5280): the owner of an OpenSSL structure, which it frees.
@safe package final class Certificate {
    package let pointer: OpaquePointer

    package init(owning pointer: OpaquePointer) { unsafe self.pointer = pointer }

    deinit { unsafe X509_free(pointer) }

    package static func der(of certificate: OpaquePointer) -> [UInt8] {
        unsafe encoded { unsafe i2d_X509(certificate, &$0) }
    }

    /// The public key of a certificate in DER (SubjectPublicKeyInfo).
    static func publicKey(of certificate: OpaquePointer) -> [UInt8] {
        unsafe encoded { unsafe i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &$0) }
    }

    static func sha256(of certificate: OpaquePointer) -> [UInt8] { MessageDigest.sha256(unsafe der(of: certificate)) }

    /// A time of a certificate or revocation list in seconds since 1970; `nil` without a time, or for a malformed one.
    static func seconds(_ time: UnsafePointer<ASN1_TIME>?) -> Int? {
        var fields = unsafe tm()
        guard let time = unsafe time, unsafe ASN1_TIME_to_tm(time, &fields) == 1 else { return nil }
        return Int(unsafe timegm(&fields))
    }

    /// The end of the validity of a certificate in seconds since 1970; `nil` if it is malformed.
    static func expiry(of certificate: OpaquePointer) -> Int? { unsafe seconds(X509_get0_notAfter(certificate)) }

    /// The text of a distinguished name (RFC 4514); control bytes and non-ASCII characters are escaped.
    static func text(of name: OpaquePointer?) -> String {
        guard let name = unsafe name else { return "" }
        let text = try? unsafe PEMWriter.text { bio in unsafe martlet_print_name(bio, name) }
        return text ?? ""
    }

    /// The host names and IP addresses among the subject alternative names of a certificate, as text.
    static func names(of certificate: OpaquePointer) -> [String] {
        guard let raw = unsafe X509_get_ext_d2i(certificate, NID_subject_alt_name, nil, nil) else { return [] }
        let names = OpaquePointer(raw)
        defer { unsafe GENERAL_NAMES_free(names) }
        var texts: [String] = []
        for index in 0..<max(unsafe OPENSSL_sk_num(names), 0) {
            var type: Int32 = 0
            guard let element = unsafe OPENSSL_sk_value(names, index),
                let value = unsafe GENERAL_NAME_get0_value(element.assumingMemoryBound(to: GENERAL_NAME.self), &type),
                type == GEN_DNS || type == GEN_IPADD
            else { continue }
            let string = unsafe value.assumingMemoryBound(to: ASN1_STRING.self)
            let bytes = unsafe Array(
                UnsafeBufferPointer(start: ASN1_STRING_get0_data(string), count: Int(ASN1_STRING_length(string))))
            if type == GEN_DNS {
                // For display and logs: bytes that are not visible ASCII are replaced.
                let visible = bytes.prefix(255).map { (0x21...0x7E).contains($0) ? $0 : UInt8(ascii: "?") }
                texts.append(String(decoding: visible, as: UTF8.self))
            } else if bytes.count == 4 {
                texts.append(bytes.map { String($0) }.joined(separator: "."))
            } else {
                texts.append(IPv6Groups.text(of: bytes))
            }
        }
        return texts
    }
}

/// A certificate revocation list (RFC 5280 §5): the owner of an OpenSSL structure, which it frees.
@safe package final class RevocationList {
    package let pointer: OpaquePointer

    package init(owning pointer: OpaquePointer) { unsafe self.pointer = pointer }

    deinit { unsafe X509_CRL_free(pointer) }

    /// The times at which the list becomes valid and expires, if it does, in seconds since 1970; `nil` if a time is
    /// malformed.
    var times: [Int]? {
        guard let start = unsafe Certificate.seconds(X509_CRL_get0_lastUpdate(pointer)) else { return nil }
        guard let next = unsafe X509_CRL_get0_nextUpdate(pointer) else { return [start] }
        return unsafe Certificate.seconds(next).map { [start, $0] }
    }

    /// Whether the list names a certificate, and its issuer, as revoked. The signature of the list is not verified.
    func revokes(_ certificate: Certificate) -> Bool {
        var entry: OpaquePointer?
        // 2 for an entry that removes the certificate from an earlier list.
        return unsafe X509_CRL_get0_by_cert(pointer, &entry, certificate.pointer) == 1
    }
}

/// A private key, or a public key that was read: the owner of an OpenSSL structure, which it frees.
@safe package final class PrivateKey {
    package let pointer: OpaquePointer

    package init(owning pointer: OpaquePointer) { unsafe self.pointer = pointer }

    deinit { unsafe EVP_PKEY_free(pointer) }

    /// The public key in DER (SubjectPublicKeyInfo).
    var publicBytes: [UInt8] { unsafe encoded { unsafe i2d_PUBKEY(pointer, &$0) } }

    /// Returns a copy of the private key in OpenSSL's default library context, independent of this key's context.
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

/// Calls an OpenSSL encoder, and returns a copy of the bytes that it allocates; empty if it fails.
private func encoded(_ encode: (inout UnsafeMutablePointer<UInt8>?) -> Int32) -> [UInt8] {
    var output: UnsafeMutablePointer<UInt8>?
    let count = unsafe encode(&output)
    guard count > 0, let output = unsafe output else {
        OpenSSLErrors.clear()
        return []
    }
    defer { unsafe CRYPTO_free(output, nil, 0) }
    return unsafe Array(UnsafeBufferPointer(start: output, count: Int(count)))
}

/// The name for which the peer's certificate must be issued: a host name or an IP address.
enum PeerName: Equatable {
    /// A host name in ASCII and lower case, without a trailing dot: verified, and sent as SNI (RFC 6066 §3).
    case host(String)
    /// An IP address: verified, but never sent as SNI.
    case address(String)

    /// Parses the host of a URL.
    /// - Returns: `nil` for text that is neither a host name nor an IP address: no certificate could match it.
    init?(_ text: String) {
        var name = text
        if name.hasPrefix("["), name.hasSuffix("]") { name = String(name.dropFirst().dropLast()) }
        if SocketAddress(literal: name, port: 0) != nil {
            self = .address(name)
            return
        }
        if name.hasSuffix(".") { name.removeLast() }
        name = name.lowercased()
        let allowed = "abcdefghijklmnopqrstuvwxyz0123456789-_."
        // In OpenSSL, a name that begins with a dot matches certificates of all its subdomains.
        guard (1...253).contains(name.utf8.count), !name.hasPrefix("."),
            name.utf8.allSatisfy({ allowed.utf8.contains($0) })
        else { return nil }
        self = .host(name)
    }

    var text: String {
        switch self {
        case .host(let name), .address(let name): name
        }
    }
}
