import Martlet

/// A session with its views, one for each way to open connections, so that requests that ask for the same
/// share them.
struct BatchSession: Sendable {
    /// More views than these, and all begin anew.
    private static let viewLimit = 64
    /// The session.
    let base: HTTPSession
    private var views: [BatchConnection: HTTPSession] = [:]
    private let jar = CookieJar(trustsLoopback: true)

    /// A clean session for so many requests at a time.
    init(parallel: Int) {
        var configuration = SessionConfiguration.default
        configuration.pool.connectionsPerHost = max(configuration.pool.connectionsPerHost, parallel)
        configuration.pool.idleConnectionsPerHost = configuration.pool.connectionsPerHost
        configuration.pool.totalConnections = max(configuration.pool.totalConnections, parallel)
        if let file = Environment["SSLKEYLOGFILE"], !file.isEmpty { configuration.tls.keyLogFile = file }
        configuration.redirects = .refuse
        base = HTTPSession(configuration: configuration)
    }

    /// The view for a way to open connections.
    mutating func view(for connection: BatchConnection) -> HTTPSession {
        if connection == BatchConnection() { return base }
        if let view = views[connection] { return view }
        if views.count >= BatchSession.viewLimit { views = [:] }
        let jar = jar
        let view = base.with { configuration in
            configuration.connectRedirections = connection.redirections
            if let file = connection.authorityFile { configuration.tls.trust = .only(.file(file)) }
            if connection.usesCookies { configuration.cookies = jar }
        }
        views[connection] = view
        return view
    }
}
