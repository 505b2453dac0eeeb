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
    static func peer(
        _ number: Int, _ information: ConnectionInformation, serverName: String?
    ) -> OriginPeer {
        OriginPeer(
            number: number, remoteAddress: information.remoteAddress, tlsVersion: information.tls?.version,
            isResumed: information.tls?.isResumed ?? false,
            applicationProtocol: information.tls?.applicationProtocol, serverName: serverName,
            clientCertificate: information.tls?.peerCertificate ?? [])
    }
}

/// Finds the subject's common name in a certificate (RFC 5280 §4.1) without verifying anything: TLS did that.
enum CertificateSubject {
    /// The last common name of the subject; `nil` when there is none or the bytes are no certificate.
    static func commonName(inDER der: [UInt8]) -> String? {
        var outer = Elements(der[...])
        guard let certificate = outer.next(), certificate.tag == 0x30 else { return nil }
        var inner = Elements(certificate.content)
        guard let body = inner.next(), body.tag == 0x30 else { return nil }
        // Version, serial number, signature, issuer, validity, subject: the version may be missing.
        let parts = Array(Elements(body.content))
        let subjectIndex = parts.first?.tag == 0xA0 ? 5 : 4
        guard parts.count > subjectIndex, parts[subjectIndex].tag == 0x30 else { return nil }
        var name: String?
        for set in Elements(parts[subjectIndex].content) {
            for attribute in Elements(set.content) {
                var pair = Elements(attribute.content)
                guard let type = pair.next(), let value = pair.next() else { continue }
                // 2.5.4.3: id-at-commonName.
                if type.tag == 0x06, type.content.elementsEqual([0x55, 0x04, 0x03]) {
                    name = String(decoding: value.content, as: UTF8.self)
                }
            }
        }
        return name
    }

    /// The elements of a DER sequence (X.690), up to the first that is malformed.
    private struct Elements: Sequence, IteratorProtocol {
        private var rest: ArraySlice<UInt8>

        init(_ bytes: ArraySlice<UInt8>) {
            rest = bytes
        }

        mutating func next() -> (tag: UInt8, content: ArraySlice<UInt8>)? {
            guard let tag = rest.popFirst(), let first = rest.popFirst() else { return nil }
            var length = Int(first)
            if first >= 0x80 {
                let count = Int(first & 0x7F)
                guard (1...4).contains(count), rest.count >= count else { return nil }
                length = rest.prefix(count).reduce(0) { $0 << 8 | Int($1) }
                rest = rest.dropFirst(count)
            }
            guard rest.count >= length else { return nil }
            defer { rest = rest.dropFirst(length) }
            return (tag, rest.prefix(length))
        }
    }
}
