#if Metrics
    import CoreMetrics
#endif

/// A session's configuration, stored once for all of its calls, and the values that calls derive from it.
package final class SessionSettings: Sendable {
    /// All settings. Each read in another module copies them as a whole; the subscript reads one feature's setting.
    package let configuration: SessionConfiguration
    /// The error of an invalid default field.
    let headerError: HTTPError?
    /// The decoder and the error mapper of the session.
    let coding: ResponseCoding
    /// Whether the default fields contain `Accept-Encoding`, so that no further codings are requested.
    let defaultsNameAcceptEncoding: Bool
    /// The default fields, encoded once; `nil` if they depend on the request.
    private let defaultFields: DefaultFields?
    /// The environment's proxies, read when the session was created. Its views share them.
    let environment: ProxyEnvironment
    /// Whether no call uses a proxy unless its own options name one.
    let isWithoutProxies: Bool
    /// The timeouts of calls without timeouts of their own.
    let timeouts: Timeouts
    /// The priority of calls without one of their own. Reading it from the configuration would copy that for each call.
    let priority: RequestPriority
    /// The stages that the settings of features add.
    let features: [StageSource]
    /// The stages that calls may need, in the order of the pipeline.
    let stages: [StageSource]
    /// The stages of calls without options of their own.
    let activeStages: [StageSource]
    /// The functions of features that replace URLs.
    private let urlReplacements: [@Sendable (HTTPURL, RequestOptions) -> HTTPURL]
    /// All middleware of the session, for the events of calls.
    let middleware: [any HTTPMiddleware]
    /// Whether each call is reported: to the delegate, middleware, or instruments.
    let isObserved: Bool
    /// Whether all connections lead to a Unix socket or a custom connector, and so never to a proxy.
    private let ignoresProxies: Bool
    #if Metrics
        private let meters: CallMeters
    #endif

    /// Creates the settings of a configuration.
    /// - Parameter environment: The environment's proxies that another view has read; `nil` to read them now.
    init(_ configuration: SessionConfiguration, environment: ProxyEnvironment? = nil) {
        let environment = environment ?? ProxyEnvironment()
        self.environment = environment
        ignoresProxies = configuration.dialSettings.ignoresProxies
        isWithoutProxies = ignoresProxies || configuration.proxy.isIdle(environment)
        middleware = configuration.middleware + configuration.networkMiddleware
        #if Metrics || Tracing
            isObserved = true
        #else
            isObserved = configuration.delegate != nil || !middleware.isEmpty
        #endif
        timeouts = configuration.timeouts.merged(over: .standard)
        priority = configuration.priority
        features = configuration.settings.stages
        stages = StageSource.pipeline(configuration, features)
        activeStages = stages.filter { $0.isActive(configuration) }
        urlReplacements = features.compactMap { $0.urlReplacement(configuration) }
        self.configuration = configuration
        coding = ResponseCoding(configuration)
        #if Metrics
            meters = CallMeters(configuration.metricsFactory ?? MetricsSystem.factory)
        #endif
        headerError = configuration.headers.error
        defaultsNameAcceptEncoding = configuration.headers[.acceptEncoding] != nil
        defaultFields = DefaultFields(configuration)
    }

    /// The value of a feature's setting; the key's default if it was not set.
    package subscript<Key: SettingKey>(_ key: Key.Type) -> Key.Value { configuration.settings[key] ?? Key.defaultValue }

    /// Returns the URL that a request is sent to: the same, or its replacement by a feature.
    package func effective(_ url: HTTPURL, _ options: RequestOptions) -> HTTPURL {
        urlReplacements.reduce(url) { $1($0, options) }
    }

    /// Returns the instruments that measure or trace a call.
    func instruments(for call: Call, pool: ConnectionPool) -> [any CallInstrument] {
        var instruments: [any CallInstrument] = []
        #if Metrics
            instruments.append(CallMeasurement(meters, pool: pool))
        #endif
        #if Tracing
            instruments.append(CallSpan(configuration.tracer, method: call.method, url: call.url))
        #endif
        return instruments
    }

    /// Returns the proxy of a call; `nil` for a direct connection.
    /// - Parameters:
    ///   - own: The call's own proxy setting.
    ///   - tunnels: Whether an HTTP proxy must not forward the request, as it would remove `Upgrade` (RFC 9110 §7.6.1).
    func proxy(for url: HTTPURL, _ own: ProxySettings?, tunnels: Bool, request: () -> HTTPRequest) throws(HTTPError)
        -> ProxyServer?
    {
        if ignoresProxies { return nil }
        let found = try (own ?? configuration.proxy).proxy(for: url, environment, request: request)
        // A forwarding proxy connects to the origin in the URL. Only a tunnel can lead to another address, as in curl.
        let leadsElsewhere = configuration.connectOverrides.contains { $0.applies(to: url.host, port: url.port) }
        return leadsElsewhere || tunnels ? found?.alwaysTunneling() : found
    }

    /// Returns the fields of a request in the order they are sent, without `Host` and the fields of the cache and body.
    /// - Parameters:
    ///   - own: The fields that the caller gave.
    ///   - hidesProxyAuthorization: Whether `Proxy-Authorization` is left out.
    func sentFields(
        _ own: HTTPFields, _ options: RequestOptions, acceptsContentCoding: Bool, hidesProxyAuthorization: Bool,
        _ supplement: RequestAdditions?
    ) -> SentFields {
        let omitted = options.omittedFields
        var usual: SentFields?
        if let defaultFields, omitted.isEmpty, defaultFields.apply(to: own) {
            usual = acceptsContentCoding ? defaultFields.asking : defaultFields.plain
        }
        if let usual, own.isEmpty, supplement?.cookies == nil, supplement?.authorization == nil { return usual }
        func isHidden(_ name: HTTPField.Name) -> Bool {
            RequestComposer.isSetHere(name) || (hidesProxyAuthorization && name == .proxyAuthorization)
        }
        var block = FieldBlock()
        for field in own where !isHidden(field.name) { block.append(field) }
        // Several Cookie fields are combined into one in HTTP/1.1 (RFC 6265bis §5.7.3).
        var cookies = own[fields: .cookie].map(\.valueBytes)
        if cookies.isEmpty, !omitted.contains(.cookie) {
            cookies = configuration.headers.fields[fields: .cookie].map(\.valueBytes)
        }
        // After the caller's cookies: of two cookies with one name most servers use the first.
        if let jar = supplement?.cookies { cookies.append(jar) }
        if !cookies.isEmpty { block.append(name: "Cookie".utf8, value: cookies.joined(separator: "; ".utf8)) }
        if let usual = usual?.block {
            for index in usual.indices { block.append(name: usual.name(at: index), value: usual.value(at: index)) }
        } else {
            configuration.addDefaultFields(to: &block, acceptsContentCoding: acceptsContentCoding) {
                isHidden($0) || own[$0] != nil || omitted.contains($0)
            }
        }
        if let authorization = supplement?.authorization {
            block.append(name: "Authorization".utf8, value: authorization)
        }
        return SentFields(block)
    }
}

/// Header fields in the order they are sent.
///
/// A class, so that most requests share one object.
final class SentFields: Sendable {
    let block: FieldBlock
    /// The fields as lines, if they were encoded before.
    let lines: [UInt8]?
    /// Whether the server is asked to close the connection.
    let asksToClose: Bool

    init(_ block: FieldBlock, lines: [UInt8]? = nil) {
        (self.block, self.lines) = (block, lines)
        asksToClose = block.contains("connection", token: "close")
    }
}

/// The default fields of a session's requests, encoded once, for requests that set none of these fields: those of the
/// configuration, `User-Agent`, `Accept` and `Accept-Encoding`.
private final class DefaultFields: Sendable {
    private let names: Set<HTTPField.Name>
    /// The fields with `Accept-Encoding`.
    let asking: SentFields
    /// The fields without `Accept-Encoding`.
    let plain: SentFields

    /// Creates the default fields; `nil` if they differ from request to request, or cannot be encoded.
    init?(_ configuration: SessionConfiguration) {
        let defaults = configuration.headers.fields
        let dependent: [HTTPField.Name] = [.contentType, .contentEncoding, .proxyAuthorization, .connection, .expect]
        guard !defaults.contains(where: { RequestComposer.isSetHere($0.name) || dependent.contains($0.name) }) else {
            return nil
        }
        func encoded(acceptsContentCoding: Bool) throws(WireError) -> SentFields {
            var block = FieldBlock()
            configuration.addDefaultFields(to: &block, acceptsContentCoding: acceptsContentCoding) { _ in false }
            var encoder = RequestEncoder()
            encoder.beginLines()
            for index in block.indices { try encoder.field(of: block, at: index) }
            return SentFields(block, lines: encoder.bytes)
        }
        do throws(WireError) {
            asking = try encoded(acceptsContentCoding: true)
            plain = try encoded(acceptsContentCoding: false)
        } catch { return nil }
        names = Set(defaults.map(\.name)).union([.userAgent, .accept])
    }

    /// Whether a request with these fields is sent with all default fields, unchanged.
    func apply(to fields: HTTPFields) -> Bool { fields.isEmpty || !fields.contains { names.contains($0.name) } }
}

extension SessionConfiguration {
    /// Adds the default fields to a request's own.
    /// - Parameter isLeftOut: Returns whether the request sets a field itself, or omits it.
    fileprivate func addDefaultFields(
        to block: inout FieldBlock, acceptsContentCoding: Bool, leavingOut isLeftOut: (HTTPField.Name) -> Bool
    ) {
        for field in headers where !isLeftOut(field.name) { block.append(field) }
        let added: [(HTTPField.Name, String?)] = [
            (.userAgent, userAgent), (.accept, "*/*"),
            (.acceptEncoding, acceptsContentCoding ? ContentCoding.acceptedNames : nil),
        ]
        for case (let name, let value?) in added where headers[name] == nil && !isLeftOut(name) {
            block.append(name: name.rawName, value: value)
        }
    }
}

/// The settings of features by their keys. Copies share their storage.
struct SettingsStore: Sendable {
    private protocol Setting: AnyObject, Sendable {}

    private final class SettingOf<Value: Sendable>: Setting {
        let value: Value

        init(_ value: Value) { self.value = value }
    }

    private struct Entry {
        let key: ObjectIdentifier
        let setting: any Setting
        let source: StageSource?
        let attachment: (any AttachmentKey.Type)?
    }

    private var entries: [Entry] = []

    /// The value of a key; `nil` if it was not set.
    subscript<Key: SettingKey>(_ key: Key.Type) -> Key.Value? {
        get {
            let identifier = ObjectIdentifier(key)
            guard let entry = entries.first(where: { $0.key == identifier }) else { return nil }
            return (entry.setting as? SettingOf<Key.Value>)?.value
        }
        set {
            let identifier = ObjectIdentifier(key)
            guard let newValue else { return entries.removeAll { $0.key == identifier } }
            put(
                Entry(
                    key: identifier, setting: SettingOf(newValue), source: .of(key),
                    attachment: key as? any AttachmentKey.Type))
        }
    }

    mutating func removeStages(at position: StagePosition) {
        entries.removeAll { $0.source?.isOwn(at: position) ?? false }
    }

    /// Replaces the entry of the same key, or appends one.
    private mutating func put(_ entry: Entry) {
        if let index = entries.firstIndex(where: { $0.key == entry.key }) {
            entries[index] = entry
        } else {
            entries.append(entry)
        }
    }

    /// Returns these settings, with the values of `base` for keys that are not set here.
    func merged(over base: SettingsStore) -> SettingsStore {
        guard !base.entries.isEmpty else { return self }
        var merged = base
        for entry in entries { merged.put(entry) }
        return merged
    }

    var hasStages: Bool { entries.contains { $0.source != nil } }
    var stages: [StageSource] { entries.compactMap(\.source) }
    /// The keys of attachments to sessions.
    var attachments: [any AttachmentKey.Type] { entries.compactMap(\.attachment) }
}
