package import MartletCore
package import MartletTesting

extension SessionConfiguration {
    /// Returns these settings for a machine that stalls, because it is busy with other tests or was suspended: timeouts
    /// end only hangs, and idle connections do not expire.
    /// - Parameter total: The total timeout; none by default.
    package func patient(total: Duration? = nil) -> SessionConfiguration {
        let long = Duration.seconds(300)
        var configuration = self
        configuration.timeouts = Timeouts(connect: long, head: long, idle: long, unread: long, total: total)
        configuration.pool.idleLifetime = .seconds(3600)
        return configuration
    }
}

extension HTTPSession {
    /// Creates a session for one test, which trusts the origin. Its timeouts end only hangs.
    package static func own(_ origin: TestOrigin, _ change: (inout SessionConfiguration) -> Void = { _ in })
        -> HTTPSession
    {
        var configuration = SessionConfiguration.ephemeral.patient()
        if let authority = origin.authorityPEM { configuration.tls.trust = .only(.text(authority)) }
        change(&configuration)
        return HTTPSession(configuration: configuration)
    }
}
