import Martlet
import MartletTesting
import MartletTestSupport

extension HTTPSession {
    /// Creates a session for one test, with the test's changes. Its timeouts end only hangs.
    static func own(_ change: (inout SessionConfiguration) -> Void = { _ in }) -> HTTPSession {
        var configuration = SessionConfiguration.ephemeral.patient()
        change(&configuration)
        return HTTPSession(configuration: configuration)
    }

    /// Creates a session that trusts a test origin.
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
    /// Creates a request to a path of a test origin.
    init(
        _ method: HTTPRequest.Method = .get, _ origin: TestOrigin, _ path: String = "/",
        _ fields: HTTPFields = HTTPFields()
    ) throws {
        try self.init(method: method, url: origin.url(path), headers: fields)
    }
}

extension ScriptStep {
    /// An empty response that keeps the connection open.
    static let sendEmpty = ScriptStep.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    /// A response of two bytes that keeps the connection open.
    static let sendOK = ScriptStep.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
}
