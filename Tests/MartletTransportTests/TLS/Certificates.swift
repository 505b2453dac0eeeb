import MartletTestSupport
import MartletTransport

/// One certificate authority for all tests, and contexts that use it.
enum Certificates {
    static let authority = Result { () throws(TLSError) in try CertificateAuthority() }
    private static let loopback = Result { () throws(TLSError) in
        try authority.get().issue(CertificateTemplate.loopback)
    }

    /// Returns a server context with a certificate of the authority.
    static func server(
        _ template: CertificateTemplate? = nil, change: (inout TLSServerSettings) -> Void = { _ in }
    ) throws -> TLSContext {
        let issued = try template.map { template throws(TLSError) in try authority.get().issue(template) }
        var settings = TLSServerSettings(identity: try (issued ?? loopback.get()).identity)
        change(&settings)
        return try TLSContext(server: settings)
    }

    /// Returns a client context that trusts the authority.
    static func client(_ change: (inout TLSSettings) -> Void = { _ in }) throws -> TLSContext {
        var settings = TLSSettings(trust: try authority.get().trust)
        change(&settings)
        return try TLSContext(client: settings)
    }
}
