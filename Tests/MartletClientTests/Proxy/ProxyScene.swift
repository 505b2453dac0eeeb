import Martlet
import MartletTestSupport
import MartletTesting
import MartletTransport
import Testing

/// What the tests about proxies have in common.
enum ProxyScene {
    /// Certificates of a proxy's own authority, which no test origin's session trusts.
    static func certificate(
        _ template: CertificateTemplate = .loopback
    ) throws -> (context: TLSContext, tls: TLSSettings) {
        let authority = try CertificateAuthority()
        let issued = try authority.issue(template)
        let context = try TLSContext.server(
            certificateChainPEM: issued.certificateChainPEM, privateKeyPEM: issued.privateKeyPEM)
        return (context, TLSSettings(trust: .only(.text(authority.rootPEM))))
    }

    /// Knows no name.
    struct NoNames: Resolver {
        func addresses(of host: String, port: Int) async throws(ResolutionError) -> [SocketAddress] {
            throw ResolutionError(host: host, message: "no such name")
        }
    }

    /// The whole body of a request.
    static func collect(_ request: OriginRequest) async throws -> [UInt8] {
        var bytes: [UInt8] = []
        for try await piece in request.body { bytes += piece }
        return bytes
    }

    /// The error of a call that has to fail.
    static func failure(
        _ session: HTTPSession, _ url: String, headers: HTTPHeaders = HTTPHeaders(),
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> HTTPError {
        try #require(
            await #expect(throws: HTTPError.self, sourceLocation: sourceLocation) {
                try await session.get(url, headers: headers)
            }, sourceLocation: sourceLocation)
    }

    /// A session through the HTTP proxy on a port.
    static func session(
        _ proxyPort: Int, credentials: ProxyCredentials? = nil,
        _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> HTTPSession {
        let proxy = try ProxySettings.http("127.0.0.1:\(proxyPort)", credentials: credentials)
        return .own { configuration in
            configuration.proxy = proxy
            change(&configuration)
        }
    }
}
