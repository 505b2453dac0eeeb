import MartletContent
import MartletCaching
import MartletNetwork
public import MartletCore
package import HTTPTypes
import MartletCache
import MartletTransport

/// A configuration is encoded as far as it is data.
///
/// Left out, and as in ``SessionConfiguration/default`` when it is decoded: code (the delegate, middleware, the error mapper,
/// the resolver, the logger, and what measures and traces), what tells the network's condition and path, the cookie jar, the
/// cache, and secrets: ``authentication``, the credentials of proxies,
/// identities with their keys and pass phrases, and the fields `Authorization`, `Proxy-Authorization`, `Cookie` and
/// `Set-Cookie` of ``headers``. Where a closure decides about trust or about proxies, or a validator about answers, encoding
/// throws: without it others would be trusted, calls would go another way, or other answers would be taken.
///
/// Keys that are not known are ignored, as a later version may write them; those that are missing have their default; values
/// that are out of range throw.
extension SessionConfiguration: Codable {
    private enum CodingKeys: String, CodingKey {
        case timeouts, bufferedBodyLimit, headers, userAgent, decompressesResponses, decompressionLimits
        case continueTimeout, pool, bandwidth, wireLimits, tls, proxy, redirects, retry
        case resolveOverrides, connectRedirections, unixSocketPath, connectRace, socketOptions, priority
        case order, concurrency, cacheMode, cachePartition
    }

    /// Reads a configuration.
    /// - Throws: `DecodingError`, also for a value that is out of range.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self = .default
        timeouts = try container.value(.timeouts, or: timeouts)
        bufferedBodyLimit = try container.value(.bufferedBodyLimit, or: bufferedBodyLimit)
        headers = try container.value(.headers, or: headers)
        // No agent is a choice of its own.
        if container.contains(.userAgent) {
            userAgent = try container.decodeIfPresent(String.self, forKey: .userAgent)
        }
        decompressesResponses = try container.value(.decompressesResponses, or: decompressesResponses)
        decompressionLimits = try container.value(.decompressionLimits, or: decompressionLimits)
        continueTimeout = try container.duration(.continueTimeout) ?? continueTimeout
        pool = try container.value(.pool, or: pool)
        bandwidth = try container.value(.bandwidth, or: bandwidth)
        wireLimits = try container.value(.wireLimits, or: wireLimits)
        tls = try container.value(.tls, or: tls)
        proxy = try container.value(.proxy, or: proxy)
        redirects = try container.value(.redirects, or: redirects)
        retry = try container.value(.retry, or: retry)
        resolveOverrides = try container.value(.resolveOverrides, or: resolveOverrides)
        connectRedirections = try container.value(.connectRedirections, or: connectRedirections)
        unixSocketPath = try container.decodeIfPresent(String.self, forKey: .unixSocketPath)
        connectRace = try container.value(.connectRace, or: connectRace)
        socketOptions = try container.value(.socketOptions, or: socketOptions)
        priority = try container.value(.priority, or: priority)
        order = try container.value(.order, or: order)
        concurrency = try container.decodeIfPresent(ConcurrencyPolicy.self, forKey: .concurrency)
        cacheMode = try container.value(.cacheMode, or: cacheMode)
        cachePartition = try container.decodeIfPresent(String.self, forKey: .cachePartition)
    }

    /// Writes the configuration, without secrets and without code.
    /// - Throws: `EncodingError.invalidValue` where a closure decides about trust or about proxies, for a validator, and where a
    ///   root's text holds a private key.
    public func encode(to encoder: any Encoder) throws {
        try validator?.refuseEncoding(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(timeouts, forKey: .timeouts)
        try container.encode(bufferedBodyLimit, forKey: .bufferedBodyLimit)
        try container.encode(headers.withoutSecrets, forKey: .headers)
        try container.encode(userAgent, forKey: .userAgent)
        try container.encode(decompressesResponses, forKey: .decompressesResponses)
        try container.encode(decompressionLimits, forKey: .decompressionLimits)
        try container.encode(continueTimeout, forKey: .continueTimeout)
        try container.encode(pool, forKey: .pool)
        try container.encode(bandwidth, forKey: .bandwidth)
        try container.encode(wireLimits, forKey: .wireLimits)
        try container.encode(tls, forKey: .tls)
        try container.encode(proxy, forKey: .proxy)
        try container.encode(redirects, forKey: .redirects)
        try container.encode(retry, forKey: .retry)
        try container.encode(resolveOverrides, forKey: .resolveOverrides)
        try container.encode(connectRedirections, forKey: .connectRedirections)
        try container.encodeIfPresent(unixSocketPath, forKey: .unixSocketPath)
        try container.encode(connectRace, forKey: .connectRace)
        try container.encode(socketOptions, forKey: .socketOptions)
        try container.encode(priority, forKey: .priority)
        try container.encode(order, forKey: .order)
        try container.encodeIfPresent(concurrency, forKey: .concurrency)
        try container.encode(cacheMode, forKey: .cacheMode)
        try container.encodeIfPresent(cachePartition, forKey: .cachePartition)
    }
}

/// Settings are encoded without credentials. A selector cannot be encoded: without it calls would go another way.
extension ProxySettings: Codable {
    private enum CodingKeys: String, CodingKey {
        case usesEnvironment, server, bypass, replacesExceptions, tunnelsEverything
    }

    /// Reads settings, without credentials. What is missing is as in ``none``.
    /// - Throws: `DecodingError`, also for a proxy that is none.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        var settings: ProxySettings
        if let server = try container.decodeIfPresent(ProxyServer.self, forKey: .server) {
            settings = .server(server)
        } else {
            settings = try container.value(.usesEnvironment, or: false) ? .environment : .none
        }
        if let list = try container.decodeIfPresent(String.self, forKey: .bypass) {
            let replaces = try container.value(.replacesExceptions, or: false)
            settings = replaces ? settings.bypassingOnly(ProxyBypass(list)) : settings.bypassing(list)
        }
        if try container.value(.tunnelsEverything, or: false) { settings = settings.tunnellingEverything() }
        self = settings
    }

    /// Writes the settings. Credentials are left out.
    /// - Throws: `EncodingError.invalidValue` for a selector.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        switch rule {
        case .none: try container.encode(false, forKey: .usesEnvironment)
        case .environment: try container.encode(true, forKey: .usesEnvironment)
        case .server(let server): try container.encode(server, forKey: .server)
        case .selector:
            throw EncodingError.invalidValue(
                self,
                EncodingError.Context(
                    codingPath: encoder.codingPath,
                    debugDescription: "a proxy that a closure chooses cannot be encoded"))
        }
        if !bypass.isEmpty || replacesExceptions {
            try container.encode(bypass.text, forKey: .bypass)
            try container.encode(replacesExceptions, forKey: .replacesExceptions)
        }
        if tunnelsEverything { try container.encode(true, forKey: .tunnelsEverything) }
    }
}

extension ResponseValidator {
    /// Keeps settings from being written without their validator: without it answers would be taken that are refused now.
    /// - Throws: `EncodingError.invalidValue`, always.
    func refuseEncoding(to encoder: any Encoder) throws {
        throw EncodingError.invalidValue(
            self,
            EncodingError.Context(
                codingPath: encoder.codingPath, debugDescription: "a validator cannot be encoded"))
    }
}

extension HTTPFields {
    /// The fields without those that hold credentials: secrets are never encoded.
    package var withoutSecrets: HTTPFields {
        var fields = self
        for name in HTTPFields.secretNames { fields[name] = nil }
        return fields
    }

    private static let secretNames: [HTTPField.Name] = [
        .authorization, .proxyAuthorization, .cookie, .setCookie,
    ]
}
