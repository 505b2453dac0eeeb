import MartletTransport

/// The contents of a temporary certificate.
package struct CertificateTemplate: Hashable, Sendable {
    /// A purpose in the extended key usage.
    package enum Usage: String, Hashable, Sendable {
        /// The usage of TLS servers.
        case server = "serverAuth"
        /// The usage of TLS clients.
        case client = "clientAuth"
        /// The signing of programs, which TLS does not accept.
        case codeSigning = "codeSigning"
        /// Any extended key usage.
        case any = "anyExtendedKeyUsage"
    }

    /// A type of key.
    package enum Key: Hashable, Sendable {
        /// An elliptic curve key (P-256).
        case p256
        /// An RSA key with its size in bits.
        case rsa(Int)
    }

    /// The digest of a signature.
    package enum Digest: Hashable, Sendable {
        case sha256
        /// A broken digest, no longer in use.
        case sha1
        /// A broken digest, even older than SHA-1.
        case md5
    }

    /// An additional extension with an arbitrary value.
    package struct Extension: Hashable, Sendable {
        /// The object identifier in dotted form.
        package var identifier: String
        /// Whether the extension is marked as critical.
        package var isCritical: Bool
        /// The value in DER.
        package var value: [UInt8]

        /// Creates an extension; not critical by default.
        package init(_ identifier: String, isCritical: Bool = false, value: [UInt8]) {
            self.identifier = identifier
            self.isCritical = isCritical
            self.value = value
        }
    }

    /// The subject's common name, which is never used as a host name.
    package var commonName: String
    /// The host names among the alternative names, including wildcards; the bytes are not checked.
    package var hostNames: [String]
    /// The address literals among the alternative names.
    package var addresses: [String]
    /// The start of the validity, relative to now.
    package var notBefore: Duration
    /// The end of the validity, relative to now.
    package var notAfter: Duration
    /// The extended key usages; with none the extension is omitted.
    package var usages: [Usage]
    /// Whether the certificate can sign certificates.
    package var isAuthority: Bool
    /// The maximum number of authorities below it in a chain; `nil` for no limit (RFC 5280 §4.2.1.9).
    package var pathLength: Int?
    /// The permitted domains of issued certificates; empty for all (RFC 5280 §4.2.1.10).
    package var permittedDomains: [String] = []
    /// Whether the basic constraints are marked as critical.
    package var hasCriticalConstraints = true
    /// Additional name constraints in OpenSSL's syntax: `excluded;DNS:example.com`,
    /// `permitted;IP:192.0.2.0/255.255.255.0`.
    package var nameConstraints: [String] = []
    /// Whether the alternative names are marked as critical.
    package var hasCriticalNames = false
    /// The positive serial number in big-endian order; `nil` for a random one.
    package var serialNumber: [UInt8]?
    /// The key usage in OpenSSL's syntax; `nil` derives it from the other properties, and an empty text omits the
    /// extension.
    package var keyUsage: String?
    /// The encoded version, which is one less than the version number.
    package var version = 2
    /// Additional extensions, even if they duplicate those of other properties.
    package var extensions: [Extension] = []
    /// The type of the key.
    package var key = Key.p256
    /// The digest of the issuer's signature.
    package var digest = Digest.sha256

    /// Creates a template; by default for a server, valid for a day and since an hour ago.
    package init(
        commonName: String = "Martlet test", hostNames: [String] = [], addresses: [String] = [],
        notBefore: Duration = .seconds(-3600), notAfter: Duration = .seconds(86_400),
        usages: [Usage] = [.server],
        isAuthority: Bool = false
    ) {
        self.commonName = commonName
        self.hostNames = hostNames
        self.addresses = addresses
        self.notBefore = notBefore
        self.notAfter = notAfter
        self.usages = usages
        self.isAuthority = isAuthority
    }

    /// The template of a server certificate for `localhost`, `127.0.0.1` and `::1`.
    package static let loopback = CertificateTemplate(
        commonName: "localhost", hostNames: ["localhost"], addresses: ["127.0.0.1", "::1"])

    /// Returns the template of a client certificate.
    package static func client(_ commonName: String) -> CertificateTemplate {
        CertificateTemplate(commonName: commonName, usages: [.client])
    }

    /// The alternative names in DER (RFC 5280 §4.2.1.6), or `nil` without names. They are encoded here, so that tests
    /// can use names that no library would encode.
    var alternativeNames: [UInt8]? {
        var names: [UInt8] = []
        for name in hostNames {
            names += CertificateTemplate.element(0x82, Array(name.utf8))
        }
        for address in addresses {
            guard let parsed = SocketAddress(literal: address, port: 0) else { continue }
            names += CertificateTemplate.element(0x87, parsed.addressBytes)
        }
        return names.isEmpty ? nil : CertificateTemplate.element(0x30, names)
    }

    private static func element(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        switch content.count {
        case ..<0x80: [tag, UInt8(content.count)] + content
        case ..<0x100: [tag, 0x81, UInt8(content.count)] + content
        default:
            [tag, 0x82, UInt8(truncatingIfNeeded: content.count >> 8), UInt8(content.count & 0xFF)] + content
        }
    }
}
