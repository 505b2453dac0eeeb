import Martlet
import MartletTestSupport

extension HTTPSession {
    /// A session that trusts only a server's temporary authority.
    static func trusting(
        _ certificates: Certificates, _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) -> HTTPSession {
        var configuration = SessionConfiguration.default.patient(total: .seconds(600))
        configuration.tls.trust = .only(.file(certificates.authority))
        change(&configuration)
        return HTTPSession(configuration: configuration)
    }

    /// A session for servers without TLS.
    static func plain(_ change: (inout SessionConfiguration) -> Void = { _ in }) -> HTTPSession {
        var configuration = SessionConfiguration.default.patient(total: .seconds(600))
        change(&configuration)
        return HTTPSession(configuration: configuration)
    }
}

extension Timeouts {
    /// Timeouts that exceed any delay of a slow or briefly stalled machine.
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
    /// The kind of the TLS error; `nil` for any other error.
    var tlsKind: TLSError.Kind? {
        (underlying as? TLSError)?.kind
    }
}
