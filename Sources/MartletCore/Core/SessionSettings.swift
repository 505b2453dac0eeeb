#if Metrics
    import CoreMetrics
#endif

/// A session's configuration, held once for all of its calls, and the values that calls derive from it.
package final class SessionSettings: Sendable {
    package let configuration: SessionConfiguration
    /// The error of a default field that cannot be sent.
    let headerError: HTTPError?
    /// The decoder and the error mapper.
    let coding: ResponseCoding
    /// Whether the default fields contain `Accept-Encoding`, so that no codings are requested besides.
    let defaultsNameAcceptEncoding: Bool
    /// The default fields, encoded once; `nil` if they depend on the request.
    private let defaultFields: DefaultFields?
    /// The environment's proxies, as they were when the first of the session's views was made.
    let environment: ProxyEnvironment
    /// Whether no call goes through a proxy unless its own options say so.
    let isWithoutProxies: Bool
    /// The timeouts of calls that assign none.
    let timeouts: Timeouts
    /// The stages that settings of features add.
    let features: [StageSource]
    /// The stages that calls may need, in the order of the pipeline.
    let stages: [StageSource]
    /// The stages that calls need which set nothing themselves.
    let activeStages: [StageSource]
    /// Whether each call is reported: to the delegate, middleware, or instruments.
    let isObserved: Bool
    /// Whether connections lead elsewhere than to servers, and so never through a proxy.
    private let ignoresProxies: Bool
    #if Metrics
        private let meters: CallMeters
    #endif

    /// - Parameter environment: The variables that another view has read; `nil` to read them now.
    init(_ configuration: SessionConfiguration, environment: ProxyEnvironment? = nil) {
        let environment = environment ?? ProxyEnvironment()
        self.environment = environment
        ignoresProxies = configuration.dialSettings.ignoresProxies
        isWithoutProxies = ignoresProxies || configuration.proxy.isIdle(environment)
        #if Metrics || Tracing
            isObserved = true
        #else
            isObserved = configuration.delegate != nil || !configuration.middleware.isEmpty
        #endif
        timeouts = configuration.timeouts.merged(over: .standard)
        features = configuration.settings.stages
        stages = StageSource.pipeline(configuration, features)
        activeStages = stages.filter { $0.isActive(configuration) }
        self.configuration = configuration
        coding = ResponseCoding(configuration)
        #if Metrics
            meters = CallMeters(configuration.metricsFactory ?? MetricsSystem.factory)
        #endif
        headerError = configuration.headers.error
        defaultsNameAcceptEncoding = configuration.headers[.acceptEncoding] != nil
        defaultFields = DefaultFields(configuration)
    }

    /// The instruments that measure or trace a call.
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

    /// The proxy of a call that may have one.
    /// - Parameter own: The call's own setting.
    func proxy(for url: HTTPURL, _ own: ProxySettings?, request: () -> HTTPRequest) throws(HTTPError) -> ProxyServer? {
        if ignoresProxies { return nil }
        let found = try (own ?? configuration.proxy).proxy(for: url, environment, request: request)
        // A forwarding proxy connects to the place in the URL: only a tunnel can lead elsewhere, as in curl.
        let leadsElsewhere = configuration.connectOverrides.contains { $0.applies(to: url.host, port: url.port) }
        return leadsElsewhere ? found?.alwaysTunneling() : found
    }

    // MARK: Header fields

    /// The fields that a request is sent with, in order, except `Host`, those that a cache adds, and those of its body.
    /// - Parameters:
    ///   - own: The fields that were given.
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
        // Several Cookie fields are one in HTTP/1.1 (RFC 6265bis §5.7.3).
        var cookies = own[fields: .cookie].map(\.valueBytes)
        if cookies.isEmpty, !omitted.contains(.cookie) {
            cookies = configuration.headers.fields[fields: .cookie].map(\.valueBytes)
        }
        // After the given ones: of two cookies of one name most servers take the first.
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
        return SentFields(block: block)
    }
}

/// Header fields in the order they are sent.
struct SentFields: Sendable {
    let block: FieldBlock
    /// The fields as lines, if they were encoded before.
    var lines: [UInt8]?
}

/// The fields that requests have by their session's configuration, encoded once: its own, `User-Agent`, `Accept` and
/// `Accept-Encoding`.
///
/// They are the same for each request that has none of these fields itself.
private final class DefaultFields: Sendable {
    private let names: Set<HTTPField.Name>
    /// The fields with `Accept-Encoding`.
    let asking: SentFields
    /// The fields without it.
    let plain: SentFields

    /// `nil` if the fields differ from request to request, or cannot be encoded.
    init?(_ configuration: SessionConfiguration) {
        let defaults = configuration.headers.fields
        let dependent: [HTTPField.Name] = [.contentType, .proxyAuthorization, .connection, .expect]
        guard !defaults.contains(where: { RequestComposer.isSetHere($0.name) || dependent.contains($0.name) }) else {
            return nil
        }
        func encoded(acceptsContentCoding: Bool) throws(WireError) -> SentFields {
            var block = FieldBlock()
            configuration.addDefaultFields(to: &block, acceptsContentCoding: acceptsContentCoding) { _ in false }
            var encoder = RequestEncoder()
            encoder.beginLines()
            for index in block.indices { try encoder.field(of: block, at: index) }
            return SentFields(block: block, lines: encoder.bytes)
        }
        do throws(WireError) {
            asking = try encoded(acceptsContentCoding: true)
            plain = try encoded(acceptsContentCoding: false)
        } catch { return nil }
        names = Set(defaults.map(\.name)).union([.userAgent, .accept])
    }

    /// Whether a request with these fields of its own has the default fields as they are.
    func apply(to fields: HTTPFields) -> Bool { fields.isEmpty || !fields.contains { names.contains($0.name) } }
}

extension SessionConfiguration {
    /// Adds the fields that a request has besides its own.
    /// - Parameter isLeftOut: Whether the request has a field itself, or does not want it.
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

/// The settings of features by their keys. A copy costs one reference.
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
            let index = entries.firstIndex { $0.key == identifier }
            let entry = newValue.map { value in
                Entry(
                    key: identifier, setting: SettingOf(value), source: .of(key),
                    attachment: key as? any AttachmentKey.Type)
            }
            switch (index, entry) {
            case (let index?, let entry?): entries[index] = entry
            case (let index?, nil): entries.remove(at: index)
            case (nil, let entry?): entries.append(entry)
            case (nil, nil): break
            }
        }
    }

    /// These settings, after those of a base whose keys are not set here.
    func merged(over base: SettingsStore) -> SettingsStore {
        guard !base.entries.isEmpty else { return self }
        var merged = base
        for entry in entries {
            if let index = merged.entries.firstIndex(where: { $0.key == entry.key }) {
                merged.entries[index] = entry
            } else {
                merged.entries.append(entry)
            }
        }
        return merged
    }

    var hasStages: Bool { entries.contains { $0.source != nil } }
    var stages: [StageSource] { entries.compactMap(\.source) }
    /// The keys of attachments to sessions.
    var attachments: [any AttachmentKey.Type] { entries.compactMap(\.attachment) }
}
