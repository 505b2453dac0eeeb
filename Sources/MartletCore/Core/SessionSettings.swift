#if Metrics
    import MartletContent
    import MartletURL
    import CoreMetrics
#endif
import MartletConnections
import MartletWire

/// A session's configuration, held once for all of its calls, and what follows from it for each of them.
package final class SessionSettings: Sendable {
    /// The configuration.
    package let configuration: SessionConfiguration
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
    /// The stages that features add to each call, in the order of the pipeline.
    let stages: [StageSource]
    /// Whether each call needs the pipeline.
    let hasStages: Bool
    /// The stage of calls that set nothing themselves, if it is the only one they need.
    let onlyStage: StageSource?
    /// Whether each call is told to somebody: the delegate, middleware, or instruments.
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
            configuration.delegate != nil || !configuration.middleware.isEmpty
            || SessionSettings.isInstrumented
        stages = configuration.settings.stages
        let active = stages.filter { $0.isActive(configuration) }
        let isRepeated = isObserved || configuration.retry.attempts > 1
        hasStages = isRepeated || !active.isEmpty
        onlyStage = !isRepeated && active.count == 1 ? active.first : nil
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
        do throws(WireError) {
            (plain, plainFields) = try DefaultLines.lines(configuration, asksForCoding: false)
            (asking, askingFields) = try DefaultLines.lines(configuration, asksForCoding: true)
        } catch {
            return nil
        }
        names = Set(defaults.map(\.name)).union([.userAgent, .accept])
    }

    private static func lines(
        _ configuration: SessionConfiguration, asksForCoding: Bool
    ) throws(WireError) -> ([UInt8], FieldBlock) {
        var encoder = RequestEncoder()
        var fields = FieldBlock()
        encoder.beginLines()
        for field in configuration.defaultFields(asksForCoding: asksForCoding, leavingOut: { _ in false }) {
            fields.append(field)
            try field.encode(&encoder)
        }
        return (encoder.bytes, fields)
    }

    /// Whether the lines are those of a request with these fields of its own.
    func suit(_ fields: HTTPFields) -> Bool { fields.isEmpty || !fields.contains { names.contains($0.name) } }
}

/// A field that requests have besides their own.
struct DefaultField {
    let name: HTTPField.Name
    /// The field of the session; `nil` for one of Martlet's own.
    let field: HTTPField?
    /// The value of one of Martlet's own, which was not checked yet.
    let value: String

    /// Writes it.
    func encode(_ encoder: inout RequestEncoder) throws(WireError) {
        guard let field else { return try encoder.field(name: name.rawName, value: value) }
        try RequestComposer.encode(field, &encoder)
    }
}

extension SessionConfiguration {
    /// The fields that a request has besides its own: those of the session, `User-Agent`, `Accept` and `Accept-Encoding`.
    ///
    /// The encoder, the keys of the cache and `Vary` all use these.
    /// - Parameter isLeftOut: Whether the request has a field itself, or does not want it.
    func defaultFields(asksForCoding: Bool, leavingOut isLeftOut: (HTTPField.Name) -> Bool) -> [DefaultField]
    {
        var fields = headers.filter { !isLeftOut($0.name) }.map {
            DefaultField(name: $0.name, field: $0, value: "")
        }
        func add(_ name: HTTPField.Name, _ value: String?) {
            guard let value, headers[name] == nil, !isLeftOut(name) else { return }
            fields.append(DefaultField(name: name, field: nil, value: value))
        }
        add(.userAgent, userAgent)
        add(.accept, "*/*")
        add(.acceptEncoding, asksForCoding ? ContentCoding.acceptedNames : nil)
        return fields
    }
}

extension FieldBlock {
    /// Adds a field at the end, as it goes out.
    mutating func append(_ field: DefaultField) {
        if let given = field.field {
            append(given)
        } else {
            append(name: field.name.rawName, value: field.value)
        }
    }
}
