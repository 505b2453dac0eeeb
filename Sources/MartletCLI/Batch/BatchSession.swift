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
    private let hasCache: Bool

    /// What answers those who want an answer of the cache alone, where there is none: 504.
    private static let emptyCache: ResponseCache = {
        var options = ResponseCache.Options()
        options.memoryPressure = nil
        return .memoryOnly(0, options: options)
    }()

    /// A clean session for so many requests at a time.
    /// - Parameter cache: What outlives it.
    init(parallel: Int, cache: ResponseCache?) {
        hasCache = cache != nil
        var configuration = SessionConfiguration.default
        configuration.pool.connectionsPerHost = max(configuration.pool.connectionsPerHost, parallel)
        configuration.pool.idleConnectionsPerHost = configuration.pool.connectionsPerHost
        configuration.pool.totalConnections = max(configuration.pool.totalConnections, parallel)
        configuration.tls.keyLogFile = KeyLogPlan.file
        configuration.redirects = .refuse
        configuration.cache = cache
        base = ProgramSessions.shared.make(configuration)
    }

    /// The session that a request is made on.
    mutating func view(for request: BatchRequest) -> HTTPSession {
        let view = view(for: request.connection)
        guard request.cacheMode == .onlyIfCached, !hasCache else { return view }
        return view.with { $0.cache = BatchSession.emptyCache }
    }

    /// The view for a way to open connections.
    private mutating func view(for connection: BatchConnection) -> HTTPSession {
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
