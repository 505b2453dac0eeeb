import MartletTransport

/// The throw-away certificates of a test origin.
public struct OriginCredentials: Sendable {
    /// A certificate with its private key, in PEM.
    public struct Identity: Sendable, Hashable {
        /// The certificate, and those between it and the authority.
        public let certificatePEM: String
        /// The private key, not encrypted.
        public let privateKeyPEM: String
    }

    /// The certificate of the origin's authority in PEM: what clients are told to trust.
    public let authorityPEM: String
    /// What a client can show when the origin demands a certificate; made out to `martlet test client`.
    public let clientIdentity: Identity
    /// What a client can show that the origin does not accept: it comes from another authority.
    public let strangerIdentity: Identity

    let context: TLSContext

    /// Makes keys and certificates, which takes a few milliseconds of computing: run it on a worker.
    init(_ settings: OriginTLS) throws(TLSError) {
        let authority = try CertificateAuthority()
        let stranger = try CertificateAuthority(commonName: "Martlet unknown test authority")
        let template = OriginCredentials.template(of: settings)
        let server: IssuedCertificate =
            switch settings.certificate {
            case .selfSigned: try CertificateAuthority.selfSigned(template)
            case .unknownAuthority: try stranger.issue(template)
            default: try authority.issue(template)
            }
        authorityPEM = authority.rootPEM
        clientIdentity = OriginCredentials.identity(try authority.issue(.client("martlet test client")))
        strangerIdentity = OriginCredentials.identity(try stranger.issue(.client("martlet test stranger")))
        var context = TLSServerSettings(identity: server.identity)
        context.minimumVersion = settings.minimumVersion
        context.maximumVersion = settings.maximumVersion
        context.applicationProtocols = settings.applicationProtocols
        context.issuesTickets = settings.issuesTickets
        if settings.demandsClientCertificate {
            context.clientAuthority = .text(authority.rootPEM)
            context.requiresClientCertificate = true
        }
        self.context = try TLSContext.server(context)
    }

    private static func identity(_ issued: IssuedCertificate) -> Identity {
        Identity(certificatePEM: issued.certificateChainPEM, privateKeyPEM: issued.privateKeyPEM)
    }

    private static func template(of settings: OriginTLS) -> CertificateTemplate {
        var template = CertificateTemplate.loopback
        for name in settings.additionalNames {
            if SocketAddress(literal: name, port: 0) == nil {
                template.hostNames.append(name)
            } else {
                template.addresses.append(name)
            }
        }
        let day = Duration.seconds(86_400)
        switch settings.certificate {
        case .expired:
            template.notBefore = .zero - day - day
            template.notAfter = .zero - day
        case .notYetValid:
            template.notBefore = day
            template.notAfter = day + day
        case .wrongName:
            template.hostNames = ["wrong.example"]
            template.addresses = []
        case .trusted, .unknownAuthority, .selfSigned: break
        }
        return template
    }
}
