import MartletTransport

/// What a throw-away certificate is to say.
package struct CertificateTemplate: Hashable, Sendable {
    /// A use that the extended key usage names.
    package enum Usage: String, Hashable, Sendable {
        /// TLS servers.
        case server = "serverAuth"
        /// TLS clients.
        case client = "clientAuth"
        /// Signing of programs: of no use to TLS.
        case codeSigning = "codeSigning"
        /// Any use.
        case any = "anyExtendedKeyUsage"
    }

    /// A kind of key.
    package enum Key: Hashable, Sendable {
        /// An elliptic curve's.
        case p256
        /// RSA's, of so many bits.
        case rsa(Int)
    }

    /// What a signature is over.
    package enum Digest: Hashable, Sendable {
        case sha256
        /// Broken, and long out of use.
        case sha1
        /// Broken, and longer out of use.
        case md5
    }

    /// An extension that the rest knows nothing of.
    package struct Extension: Hashable, Sendable {
        /// Its object identifier, in dots.
        package var identifier: String
        /// Whether it is marked as critical.
        package var isCritical: Bool
        /// What is in it, in DER.
        package var value: [UInt8]

        /// An extension.
        package init(_ identifier: String, isCritical: Bool = false, value: [UInt8]) {
            self.identifier = identifier
            self.isCritical = isCritical
            self.value = value
        }
    }

    /// The subject's common name, which never counts as a host.
    package var commonName: String
    /// Host names among the alternative names, wildcards included; bytes are taken as they are.
    package var hostNames: [String]
    /// Address literals among the alternative names.
    package var addresses: [String]
    /// When it begins to be valid, from now.
    package var notBefore: Duration
    /// When it ends to be valid, from now.
    package var notAfter: Duration
    /// The extended key usage; none: the extension is left out.
    package var usages: [Usage]
    /// Whether it may sign certificates.
    package var isAuthority: Bool
    /// How many authorities may stand below it in a chain; `nil` for any number (RFC 5280 §4.2.1.9).
    package var pathLength: Int?
    /// The domains that those it signs may be for; none: all (RFC 5280 §4.2.1.10).
    package var permittedDomains: [String] = []
    /// Whether it is marked as critical that it may, or may not, sign certificates.
    package var hasCriticalConstraints = true
    /// More constraints on names, in OpenSSL's words: `excluded;DNS:example.com`, `permitted;IP:192.0.2.0/255.255.255.0`.
    package var nameConstraints: [String] = []
    /// Whether the alternative names are marked as critical.
    package var hasCriticalNames = false
    /// Its serial number, big-endian and positive; `nil` for one by chance.
    package var serialNumber: [UInt8]?
    /// What its key may be used for, in OpenSSL's words; `nil` for what its other properties ask for, empty to leave the
    /// extension out.
    package var keyUsage: String?
    /// Its version as it is written, one less than it is called.
    package var version = 2
    /// Extensions besides those of the other properties, even if they are the same.
    package var extensions: [Extension] = []
    /// What kind of key it has.
    package var key = Key.p256
    /// What its issuer signs by.
    package var digest = Digest.sha256

    /// A template; by default for a server, valid from an hour ago for a day.
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

    /// A server's certificate for loopback: `localhost`, `127.0.0.1` and `::1`.
    package static let loopback = CertificateTemplate(
        commonName: "localhost", hostNames: ["localhost"], addresses: ["127.0.0.1", "::1"])

    /// A client's certificate.
    package static func client(_ commonName: String) -> CertificateTemplate {
        CertificateTemplate(commonName: commonName, usages: [.client])
    }

    /// The alternative names in DER (RFC 5280 §4.2.1.6): written out here, so that tests can have names that
    /// no library would make; `nil` when there are none.
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
