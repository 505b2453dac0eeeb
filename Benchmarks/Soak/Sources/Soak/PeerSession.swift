import Martlet

extension Peer {
    /// Returns a session that trusts the peer's certificates.
    func session(_ change: (inout SessionConfiguration) -> Void = { _ in }) -> HTTPSession {
        var configuration = SessionConfiguration.default
        if let authority = words["authority"] {
            configuration.tls.trust = .only(
                .text(authority.split(separator: "|").joined(separator: "\n") + "\n"))
        }
        change(&configuration)
        return HTTPSession(configuration: configuration)
    }

    /// Returns the URL of a path of its origin.
    func url(_ path: String, isSecure: Bool = false) throws -> HTTPURL {
        let port = try number(isSecure ? "secure" : "plain")
        return try HTTPURL("\(isSecure ? "https" : "http")://127.0.0.1:\(port)\(path)")
    }

    /// Returns the URL of a path of its second origin, which the load does not use.
    func controlURL(_ path: String) throws -> HTTPURL {
        try HTTPURL("http://127.0.0.1:\(try number("control"))\(path)")
    }
}

extension HTTPSession {
    /// Fetches a text; a status other than 2xx is an error.
    func text(_ url: HTTPURL) async throws -> String {
        try await send(.get, url).validated().text
    }

    /// Waits until no request runs and only idle connections are open.
    /// - Returns: Whether this happened within the limit.
    func isIdle(within limit: Duration = .seconds(30)) async throws -> Bool {
        let deadline = ContinuousClock.now + limit
        while !diagnostics.isIdle {
            if ContinuousClock.now >= deadline { return false }
            try await Task.sleep(for: .milliseconds(20))
        }
        return true
    }
}
