#if Metrics
    import CoreMetrics
#endif
import MartletConnections
import MartletWire

/// A session's configuration, held once for all of its calls, and what follows from it for each of them.
final class SessionSettings: Sendable {
    /// The configuration.
    let configuration: SessionConfiguration
    /// Whether the default fields say which codings are taken, so that nothing is asked for besides.
    let defaultsNameAcceptEncoding: Bool
    /// What `Accept` says by the default fields; `nil` where they have none.
    let defaultAccept: String?
    /// The lines of the fields that every request has, encoded once.
    let defaultLines: DefaultLines?
    /// The environment's proxies, as they were when the first of the session's views was made.
    let environment: ProxyEnvironment
    /// Whether no call goes through a proxy unless it asks for one itself.
    let isWithoutProxies: Bool
    /// Whether calls have more to them than one request, by what is set beside a cache.
    let hasSteps: Bool
    /// Whether each call is told to somebody: the delegate, interceptors, or instruments.
    let isObserved: Bool
    /// Whether connections lead elsewhere than to servers, and so never through a proxy.
    private let ignoresProxies: Bool

    /// Settings.
    /// - Parameter environment: What another view has read; `nil` to read it now.
    init(_ configuration: SessionConfiguration, environment: ProxyEnvironment? = nil) {
        let environment = environment ?? ProxyEnvironment()
        self.environment = environment
        ignoresProxies = configuration.dialSettings.ignoresProxies
        isWithoutProxies = ignoresProxies || configuration.proxy.isIdle(environment)
        isObserved =
            configuration.delegate != nil || !configuration.interceptors.isEmpty
            || SessionSettings.isInstrumented
        hasSteps =
            isObserved || configuration.cookies != nil || configuration.retry.attempts > 1
            || !configuration.authentication.isEmpty
        self.configuration = configuration
        #if Metrics
            meters = CallMeters(configuration.metricsFactory ?? MetricsSystem.factory)
        #endif
        defaultsNameAcceptEncoding = configuration.headers[.acceptEncoding] != nil
        defaultAccept = configuration.headers[.accept]
        defaultLines = DefaultLines(configuration)
    }

    /// Whether the package was built to measure or trace calls.
    private static var isInstrumented: Bool {
        #if Metrics || Tracing
            true
        #else
            false
        #endif
    }

    #if Metrics
        /// What calls are counted with.
        private let meters: CallMeters
    #endif

    /// What measures or traces a call.
    func instruments(for call: Call, pool: ConnectionPool) -> [any CallInstrument] {
        #if Metrics && Tracing
            [
                CallMeasurement(meters, pool: pool),
                CallSpan(configuration.tracer, method: call.method, url: call.url),
            ]
        #elseif Metrics
            [CallMeasurement(meters, pool: pool)]
        #elseif Tracing
            [CallSpan(configuration.tracer, method: call.method, url: call.url)]
        #else
            []
        #endif
    }

    /// The proxy of a call that may have one.
    /// - Parameter own: What the call says itself.
    func proxy(
        for url: HTTPURL, _ own: ProxySettings?, request: () -> HTTPRequest
    ) throws(HTTPError) -> ProxyServer? {
        if ignoresProxies { return nil }
        let found = try (own ?? configuration.proxy).proxy(for: url, environment, request: request)
        // A proxy that is handed a request goes where its URL says: only a tunnel can lead elsewhere, as in curl.
        let leadsElsewhere = configuration.connectRedirections.contains {
            $0.applies(to: url.host, port: url.port)
        }
        return leadsElsewhere ? found?.tunnellingEverything() : found
    }
}

/// The lines that requests have by their session's configuration: its own fields, `User-Agent`, `Accept` and
/// `Accept-Encoding`.
///
/// They are the same for each request that names none of these fields itself.
final class DefaultLines: Sendable {
    private let names: Set<HTTPField.Name>
    /// The lines with `Accept-Encoding`.
    let asking: [UInt8]
    /// The lines without it.
    let plain: [UInt8]
    /// The fields of ``asking``.
    let askingFields: FieldBlock
    /// The fields of ``plain``.
    let plainFields: FieldBlock

    /// `nil` where the fields have to be looked at for each request: they cannot be encoded, or depend on the request.
    init?(_ configuration: SessionConfiguration) {
        let defaults = configuration.headers
        guard defaults[.cookie] == nil, defaults[.contentType] == nil, defaults[.proxyAuthorization] == nil,
            defaults[.connection] == nil, defaults[.expect] == nil,
            !defaults.contains(where: { RequestComposer.isSetHere($0.name) })
        else { return nil }
        var names = Set(defaults.map(\.name))
        var encoder = RequestEncoder()
        var fields = FieldBlock()
        for field in defaults { fields.append(field) }
        do throws(WireError) {
            encoder.beginLines()
            for field in defaults { try RequestComposer.encode(field, &encoder) }
            if let agent = configuration.userAgent, !names.contains(.userAgent) {
                try encoder.field(name: "User-Agent", value: agent)
                fields.append(name: "User-Agent", value: agent)
            }
            if !names.contains(.accept) {
                try encoder.field(name: "Accept", value: "*/*")
                fields.append(name: "Accept", value: "*/*")
            }
            plain = encoder.bytes
            plainFields = fields
            try encoder.field(name: "Accept-Encoding", value: ContentCoding.acceptedNames)
            asking = encoder.bytes
            fields.append(name: "Accept-Encoding", value: ContentCoding.acceptedNames)
            askingFields = fields
        } catch {
            return nil
        }
        names.insert(.userAgent)
        names.insert(.accept)
        self.names = names
    }

    /// Whether the lines are those of a request with these fields of its own.
    func suit(_ fields: HTTPFields) -> Bool {
        fields.isEmpty || !fields.contains { names.contains($0.name) }
    }
}
