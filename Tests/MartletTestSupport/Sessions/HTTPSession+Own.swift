package import MartletCore
package import MartletTesting

extension HTTPSession {
    /// Creates a session for one test, which trusts the origin. Its timeouts end only hangs.
    package static func own(_ origin: TestOrigin, _ change: (inout SessionConfiguration) -> Void = { _ in })
        -> HTTPSession
    {
        var configuration = SessionConfiguration.ephemeral
        configuration.timeouts = Timeouts(connect: .seconds(300), head: .seconds(300), idle: .seconds(300))
        // Idle connections must not expire on a busy machine, or on one that was suspended.
        configuration.pool.idleLifetime = .seconds(3600)
        if let authority = origin.authorityPEM { configuration.tls.trust = .only(.text(authority)) }
        change(&configuration)
        return HTTPSession(configuration: configuration)
    }
}
