import MartletDigests
import MartletFeatureSettings
public import MartletContent
public import MartletCore
import MartletCache

/// A configuration is encoded without code and secrets.
///
/// These are omitted, and have the values of ``SessionConfiguration/default`` after decoding: code (the delegate,
/// middleware, the error mapper, the body encoder and decoder, the resolver, the logger, metrics and tracing), network
/// monitors, the cookie jar, the HSTS store, the cache, and secrets. Secrets are ``authentication``, the credentials of
/// proxies, identities with their keys and passphrases, and the fields `Authorization`, `Proxy-Authorization`, `Cookie`
/// and `Set-Cookie` of ``headers``. A closure that decides on trust or proxies, and a validator, are rejected with an
/// error: without them a configuration would trust other servers, use other proxies, or accept other responses.
///
/// Unknown keys are ignored, because later versions may add keys. Missing keys have their default; decoding fails if a
/// value is out of range.
extension SessionConfiguration: Codable {
    /// The settings that are encoded and decoded uniformly.
    private static let settings: [CodedSetting<SessionConfiguration>] = [
        .init("timeouts", \.timeouts), .init("bufferedBodyLimit", \.bufferedBodyLimit),
        .init("queryEncoding", \.queryEncoding), .init("headers", \.headers, written: \.withoutSecrets),
        .init("decompressesResponses", \.decompressesResponses), .init("decompressionLimits", \.decompressionLimits),
        .init("pool", \.pool), .init("bandwidth", \.bandwidth), .init("wireLimits", \.wireLimits), .init("tls", \.tls),
        .init("proxy", \.proxy), .init("redirects", \.redirects), .init("retry", \.retry),
        .init("resolveOverrides", \.resolveOverrides), .init("connectOverrides", \.connectOverrides),
        .init("unixSocketPath", optional: \.unixSocketPath), .init("happyEyeballs", \.happyEyeballs),
        .init("socketOptions", \.socketOptions), .init("serviceClass", optional: \.serviceClass),
        .init("priority", \.priority), .init("queueOrder", \.queueOrder), .init("concurrency", optional: \.concurrency),
        .init("cacheMode", \.cacheMode), .init("cachePartition", optional: \.cachePartition),
        .init("meteredNetworks", \.meteredNetworks),
        .init("digestVerification", \.digestVerification) { $0 == .off ? nil : $0 },
    ]

    /// Decodes a configuration.
    /// - Throws: `DecodingError`, also for a value that is out of range.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodedKey.self)
        self = .default
        for setting in SessionConfiguration.settings { try setting.decode(&self, container) }
        // A `null` means that no `User-Agent` is sent.
        if container.contains("userAgent") {
            userAgent = try container.decodeIfPresent(String.self, forKey: "userAgent")
        }
        continueTimeout = try container.duration("continueTimeout") ?? continueTimeout
        requestInterval = try container.duration("requestInterval") ?? requestInterval
    }

    /// Encodes the configuration, without secrets and code.
    /// - Throws: `EncodingError.invalidValue` for a closure that decides on trust or proxies or serializes queries, for
    ///   a validator, and for a PEM text of a root that contains a private key.
    public func encode(to encoder: any Encoder) throws {
        if let validator { throw encoder.rejection(of: validator, "a validator cannot be encoded") }
        var container = encoder.container(keyedBy: CodedKey.self)
        for setting in SessionConfiguration.settings { try setting.encode(self, &container) }
        try container.encode(userAgent, forKey: "userAgent")
        try container.encode(continueTimeout, forKey: "continueTimeout")
        try container.encode(requestInterval, forKey: "requestInterval")
    }
}

/// All rules are encoded. A ``QueryEncoding/serializer`` is rejected with an error, because it cannot be encoded.
extension QueryEncoding: Codable {
    private static let settings: [CodedSetting<QueryEncoding>] = [
        .init("arrays", \.arrays), .init("booleans", \.booleans), .init("dates", \.dates), .init("data", \.data),
        .init("nulls", \.nulls), .init("keys", \.keys),
    ]

    /// Decodes the rules. Missing rules have their default.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodedKey.self)
        self.init()
        for setting in QueryEncoding.settings { try setting.decode(&self, container) }
    }

    /// Encodes the rules.
    /// - Throws: `EncodingError.invalidValue` for a serializer.
    public func encode(to encoder: any Encoder) throws {
        if serializer != nil {
            throw encoder.rejection(of: self, "a query serializer cannot be encoded; remove it first")
        }
        var container = encoder.container(keyedBy: CodedKey.self)
        for setting in QueryEncoding.settings { try setting.encode(self, &container) }
    }
}

/// Settings are encoded without credentials. A selector is rejected with an error, because it cannot be encoded.
extension ProxySettings: Codable {
    /// Decodes settings, without credentials. Missing values are those of ``none``.
    /// - Throws: `DecodingError`, for example if the proxy is invalid.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodedKey.self)
        var settings: ProxySettings
        if let server = try container.decodeIfPresent(ProxyServer.self, forKey: "server") {
            settings = .server(server)
        } else {
            settings = try container.value("usesEnvironment", or: false) ? .environment : .none
        }
        if let list = try container.decodeIfPresent(String.self, forKey: "bypass") {
            let replaces = try container.value("replacesExceptions", or: false)
            settings = replaces ? settings.bypassingOnly(ProxyBypass(list)) : settings.bypassing(list)
        }
        if try container.value("alwaysTunnels", or: false) { settings = settings.alwaysTunneling() }
        self = settings
    }

    /// Encodes the settings, without credentials.
    /// - Throws: `EncodingError.invalidValue` for a selector.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodedKey.self)
        switch rule {
        case .none: try container.encode(false, forKey: "usesEnvironment")
        case .environment: try container.encode(true, forKey: "usesEnvironment")
        case .server(let server): try container.encode(server, forKey: "server")
        case .selector: throw encoder.rejection(of: self, "a proxy selector cannot be encoded")
        }
        if !bypass.isEmpty || replacesExceptions {
            try container.encode(bypass.text, forKey: "bypass")
            try container.encode(replacesExceptions, forKey: "replacesExceptions")
        }
        if alwaysTunnels { try container.encode(true, forKey: "alwaysTunnels") }
    }
}

extension Encoder {
    /// Returns the error for a value that cannot be encoded.
    package func rejection(of value: Any, _ reason: String) -> EncodingError {
        .invalidValue(value, .init(codingPath: codingPath, debugDescription: reason))
    }
}

extension HTTPFields {
    /// The fields without those that contain credentials, which are never encoded.
    package var withoutSecrets: HTTPFields {
        var fields = self
        for name in HTTPFields.secretNames { fields[name] = nil }
        return fields
    }

    fileprivate static let secretNames: [HTTPField.Name] = [.authorization, .proxyAuthorization, .cookie, .setCookie]
}

extension HTTPHeaders {
    /// The fields without those that contain credentials, which are never encoded.
    package var withoutSecrets: HTTPHeaders {
        var headers = self
        for name in HTTPFields.secretNames { headers[name] = nil }
        return headers
    }
}

/// The key of a setting. One type serves all settings, because each enum of keys would add about 3 KB of code.
package struct CodedKey: CodingKey, ExpressibleByStringLiteral {
    package let stringValue: String
    package var intValue: Int? { nil }

    package init(stringLiteral name: String) { stringValue = name }
    package init?(stringValue: String) { self.stringValue = stringValue }
    package init?(intValue: Int) { return nil }
}

/// The key and the key path of an encoded setting.
package struct CodedSetting<Settings>: Sendable {
    /// The key path of a setting.
    package typealias Place<Value> = any WritableKeyPath<Settings, Value> & Sendable

    /// The function that decodes the setting. A missing setting is left unchanged.
    package let decode: @Sendable (inout Settings, KeyedDecodingContainer<CodedKey>) throws -> Void
    package let encode: @Sendable (Settings, inout KeyedEncodingContainer<CodedKey>) throws -> Void

    /// Creates a setting that always has a value.
    /// - Parameter written: Returns the value to encode; `nil` to omit the key.
    package init<Value: Codable & Sendable>(
        _ key: CodedKey, _ place: Place<Value>, written: @escaping @Sendable (Value) -> Value? = { $0 }
    ) {
        decode = { settings, container in
            if let value = try container.decodeIfPresent(Value.self, forKey: key) { settings[keyPath: place] = value }
        }
        encode = { try $1.encodeIfPresent(written($0[keyPath: place]), forKey: key) }
    }

    /// Creates a setting whose value may be `nil`. A `nil` is not encoded.
    package init<Value: Codable & Sendable>(_ key: CodedKey, optional place: Place<Value?>) {
        decode = { settings, container in
            if let value = try container.decodeIfPresent(Value.self, forKey: key) { settings[keyPath: place] = value }
        }
        encode = { try $1.encodeIfPresent($0[keyPath: place], forKey: key) }
    }
}
