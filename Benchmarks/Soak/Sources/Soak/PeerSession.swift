import Martlet

extension Peer {
    /// A session that trusts the peer's certificates.
    func session(_ change: (inout SessionConfiguration) -> Void = { _ in }) -> HTTPSession {
        var configuration = SessionConfiguration.default
        if let authority = words["authority"] {
            configuration.tls.trust = .only(
                .text(authority.split(separator: "|").joined(separator: "\n") + "\n"))
        }
        change(&configuration)
        return HTTPSession(configuration: configuration)
    }

    /// The URL of a path of its origin.
    func url(_ path: String, isSecure: Bool = false) throws -> HTTPURL {
        let port = try number(isSecure ? "secure" : "plain")
        return try HTTPURL("\(isSecure ? "https" : "http")://127.0.0.1:\(port)\(path)")
    }

    /// The URL of a path of its second origin, which the load does not touch.
    func controlURL(_ path: String) throws -> HTTPURL {
        try HTTPURL("http://127.0.0.1:\(try number("control"))\(path)")
    }
}

extension HTTPSession {
    /// Fetches a text, whose status must be 2xx.
    func text(_ url: HTTPURL) async throws -> String {
        try await send(.get, url).validated().text
    }

    /// Waits until nothing runs and nothing is open but idle connections.
    /// - Returns: Whether that came to pass in time.
    func isIdle(within limit: Duration = .seconds(30)) async throws -> Bool {
        let deadline = ContinuousClock.now + limit
        while !diagnostics.isIdle {
            if ContinuousClock.now >= deadline { return false }
            try await Task.sleep(for: .milliseconds(20))
        }
        return true
    }
}
