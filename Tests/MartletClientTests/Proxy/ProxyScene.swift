import Martlet
import MartletTestSupport
import MartletTesting
import MartletTransport
import Testing

/// Helpers of the proxy tests.
enum ProxyScene {
    /// Returns certificates of a proxy's own authority, which test sessions do not trust.
    static func certificate(
        _ template: CertificateTemplate = .loopback
    ) throws -> (context: TLSContext, tls: TLSSettings) {
        let authority = try CertificateAuthority()
        let issued = try authority.issue(template)
        let context = try TLSContext.server(
            certificateChainPEM: issued.certificateChainPEM, privateKeyPEM: issued.privateKeyPEM)
        return (context, TLSSettings(trust: .only(.text(authority.rootPEM))))
    }

    /// A resolver without any names.
    struct NoNames: Resolver {
        func addresses(of host: String, port: Int) async throws(ResolutionError) -> [SocketAddress] {
            throw ResolutionError(host: host, message: "no such name")
        }
    }

    /// Returns the complete body of a request.
    static func collect(_ request: OriginRequest) async throws -> [UInt8] {
        var bytes: [UInt8] = []
        for try await piece in request.body { bytes += piece }
        return bytes
    }

    /// Returns the error of a call that must fail.
    static func failure(
        _ session: HTTPSession, _ url: String, headers: HTTPHeaders = HTTPHeaders(),
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> HTTPError {
        try #require(
            await #expect(throws: HTTPError.self, sourceLocation: sourceLocation) {
                try await session.get(url, headers: headers)
            }, sourceLocation: sourceLocation)
    }

    /// Returns a session through the HTTP proxy on a port.
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
