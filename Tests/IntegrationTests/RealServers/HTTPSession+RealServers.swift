import Martlet

extension HTTPSession {
    /// A session that trusts a server's throw-away authority, and nobody else.
    static func trusting(
        _ certificates: Certificates, _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) -> HTTPSession {
        var configuration = SessionConfiguration.default
        configuration.tls.trust = .only(.file(certificates.authority))
        configuration.timeouts = .patient
        change(&configuration)
        return HTTPSession(configuration: configuration)
    }

    /// A session for servers without TLS.
    static func plain(_ change: (inout SessionConfiguration) -> Void = { _ in }) -> HTTPSession {
        var configuration = SessionConfiguration.default
        configuration.timeouts = .patient
        change(&configuration)
        return HTTPSession(configuration: configuration)
    }
}

extension Timeouts {
    /// Longer than a slow machine takes for anything, and than one that stands still for a while stands still.
    static let patient = Timeouts(
        connect: .seconds(300), head: .seconds(300), idle: .seconds(300), total: .seconds(600))
}

extension RealServer {
    /// The URL of a path on one of the server's ports.
    func url(_ port: UInt16, _ path: String, scheme: String = "http") -> String {
        let host = scheme == "https" ? "localhost" : "127.0.0.1"
        return "\(scheme)://\(host):\(port)\(path)"
    }
}

extension HTTPError {
    /// Why TLS failed, where it did.
    var tlsKind: TLSError.Kind? {
        (underlying as? TLSError)?.kind
    }
}
