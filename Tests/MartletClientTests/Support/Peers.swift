import Martlet
import MartletTesting

extension HTTPSession {
    /// A session of a test's own, with the defaults and what the test changes about them.
    static func own(_ change: (inout SessionConfiguration) -> Void = { _ in }) -> HTTPSession {
        var configuration = SessionConfiguration.ephemeral
        // A machine that is busy with other tests may take long for a handshake.
        configuration.timeouts = .patient()
        change(&configuration)
        return HTTPSession(configuration: configuration)
    }

    /// A session that trusts a test origin.
    static func trusting(
        _ origin: TestOrigin, _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) -> HTTPSession {
        own { configuration in
            if let authority = origin.authorityPEM { configuration.tls.trust = .only(.text(authority)) }
            change(&configuration)
        }
    }
}

extension HTTPRequest {
    /// A request to a path of a test origin.
    init(
        _ method: HTTPRequest.Method = .get, _ origin: TestOrigin, _ path: String = "/",
        _ fields: HTTPFields = HTTPFields()
    ) throws {
        try self.init(method: method, url: origin.url(path), headers: fields)
    }
}

extension ScriptStep {
    /// An empty answer that keeps the connection.
    static let sendEmpty = ScriptStep.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    /// An answer of two bytes that keeps the connection.
    static let sendOK = ScriptStep.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
}
