public import MartletTransport

/// What a test origin shows and demands over TLS. Every origin has an authority of its own, made when it
/// starts, whose keys are never written anywhere: clients are told to trust
/// ``OriginCredentials/authorityPEM``.
public struct OriginTLS: Sendable, Hashable {
    /// What is right or wrong with the origin's certificate.
    public enum Certificate: Sendable, Hashable {
        /// Issued by the origin's authority for `localhost`, `127.0.0.1` and `::1`; valid for a day.
        case trusted
        /// As trusted, but its time was over yesterday.
        case expired
        /// As trusted, but its time begins tomorrow.
        case notYetValid
        /// As trusted, but made out to `wrong.example` alone.
        case wrongName
        /// Issued by an authority that ``OriginCredentials/authorityPEM`` knows nothing of.
        case unknownAuthority
        /// Signed by itself.
        case selfSigned
    }

    /// The certificate.
    public var certificate: Certificate
    /// Names and addresses that the certificate is made out to besides the usual ones.
    public var additionalNames: [String] = []
    /// Whether clients must show a certificate of the origin's authority, such as
    /// ``OriginCredentials/clientIdentity``.
    public var demandsClientCertificate: Bool
    /// The oldest version spoken; TLS 1.2 by default.
    public var minimumVersion = TLSVersion.tls12
    /// The newest version spoken; TLS 1.3 by default.
    public var maximumVersion = TLSVersion.tls13
    /// The protocols taken by ALPN, best first.
    public var applicationProtocols = ["http/1.1"]
    /// Whether clients get tickets to resume with; they do by default.
    public var issuesTickets = true

    /// TLS with a certificate of a kind.
    public init(_ certificate: Certificate = .trusted, demandsClientCertificate: Bool = false) {
        self.certificate = certificate
        self.demandsClientCertificate = demandsClientCertificate
    }

    /// All in order.
    public static let trusted = OriginTLS(.trusted)
    /// With a certificate that has expired.
    public static let expired = OriginTLS(.expired)
    /// With a certificate that is not valid yet.
    public static let notYetValid = OriginTLS(.notYetValid)
    /// With a certificate for another name.
    public static let wrongName = OriginTLS(.wrongName)
    /// With a certificate of an unknown authority.
    public static let unknownAuthority = OriginTLS(.unknownAuthority)
    /// With a certificate that vouches for itself.
    public static let selfSigned = OriginTLS(.selfSigned)
    /// In order itself, and demanding the client's certificate.
    public static let demandsClientCertificate = OriginTLS(.trusted, demandsClientCertificate: true)

    /// These settings with other versions.
    public func versions(_ range: ClosedRange<TLSVersion>) -> OriginTLS {
        var copy = self
        copy.minimumVersion = range.lowerBound
        copy.maximumVersion = range.upperBound
        return copy
    }
}

/// The throw-away certificates of a test origin.
public struct OriginCredentials: Sendable {
    /// A certificate with its private key, in PEM.
    public struct Identity: Sendable, Hashable {
        /// The certificate, and those between it and the authority.
        public let certificatePEM: String
        /// The private key, not encrypted.
        public let privateKeyPEM: String

        init(_ certificate: OriginCertificate) {
            certificatePEM = certificate.certificatePEM
            privateKeyPEM = certificate.privateKeyPEM
        }
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
        let month = -3600...30 * 86_400
        let authority = try OriginCertificate(.authority, "Martlet test authority", validity: month)
        let stranger = try OriginCertificate(.authority, "Martlet unknown test authority", validity: month)
        var names = ["localhost", "127.0.0.1", "::1"] + settings.additionalNames
        var (validity, issuer) = (-3600...86_400, Optional(authority))
        switch settings.certificate {
        case .trusted: break
        case .expired: validity = -2 * 86_400 ... -86_400
        case .notYetValid: validity = 86_400...2 * 86_400
        case .wrongName: names = ["wrong.example"]
        case .unknownAuthority: issuer = stranger
        case .selfSigned: issuer = nil
        }
        let server = try OriginCertificate(
            .server, "localhost", names: names, validity: validity, issuer: issuer)
        authorityPEM = authority.certificatePEM
        clientIdentity = Identity(try OriginCertificate(.client, "martlet test client", issuer: authority))
        strangerIdentity = Identity(try OriginCertificate(.client, "martlet test stranger", issuer: stranger))
        var context = TLSServerSettings(
            identity: TLSIdentity(
                certificateChain: .text(server.certificatePEM), privateKey: .text(server.privateKeyPEM)))
        context.minimumVersion = settings.minimumVersion
        context.maximumVersion = settings.maximumVersion
        context.applicationProtocols = settings.applicationProtocols
        context.issuesTickets = settings.issuesTickets
        if settings.demandsClientCertificate {
            context.clientAuthority = .text(authorityPEM)
            context.requiresClientCertificate = true
        }
        self.context = try TLSContext.server(context)
    }
}

/// Turns an accepted socket into the stream that requests come on: the one place that opens TLS.
struct OriginHandshake: Sendable {
    /// A stream and what is known of its client.
    struct Opened: Sendable {
        let stream: any ByteStream
        let peer: OriginPeer
    }

    /// `nil`: the origin is plain.
    let context: TLSContext?
    let timeout: Duration

    /// Accepts TLS where the origin speaks it; the socket is closed when that fails.
    func open(_ socket: Socket, number: Int) async throws(TransportError) -> Opened {
        guard let context else {
            let stream = PlainStream(socket: socket, remoteAddress: socket.remoteAddress)
            return Opened(
                stream: stream, peer: OriginHandshake.peer(number, stream.information, serverName: nil))
        }
        let stream = try await TLSStream.accept(
            socket: socket, remoteAddress: socket.remoteAddress, context: context,
            deadline: MonotonicTime.now().advanced(by: timeout))
        return Opened(
            stream: stream,
            peer: OriginHandshake.peer(number, stream.information, serverName: stream.requestedServerName))
    }

    /// What is known of a connection.
    static func peer(_ number: Int, _ information: ConnectionInformation, serverName: String?) -> OriginPeer {
        OriginPeer(
            number: number, remoteAddress: information.remoteAddress, tlsVersion: information.tls?.version,
            isResumed: information.tls?.isResumed ?? false,
            applicationProtocol: information.tls?.applicationProtocol, serverName: serverName,
            clientCertificate: information.tls?.peerCertificate ?? [])
    }
}
