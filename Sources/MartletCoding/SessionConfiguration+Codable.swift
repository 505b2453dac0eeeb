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

    /// All but those that are written, or checked, in another way.
    private static let settings: [CodedSetting<SessionConfiguration, CodingKeys>] = [
        .init(.timeouts, \.timeouts), .init(.bufferedBodyLimit, \.bufferedBodyLimit),
        .init(.headers, \.headers, written: \.withoutSecrets),
        .init(.decompressesResponses, \.decompressesResponses),
        .init(.decompressionLimits, \.decompressionLimits), .init(.pool, \.pool),
        .init(.bandwidth, \.bandwidth), .init(.wireLimits, \.wireLimits), .init(.tls, \.tls),
        .init(.proxy, \.proxy), .init(.redirects, \.redirects), .init(.retry, \.retry),
        .init(.resolveOverrides, \.resolveOverrides), .init(.connectRedirections, \.connectRedirections),
        .init(.unixSocketPath, optional: \.unixSocketPath), .init(.connectRace, \.connectRace),
        .init(.socketOptions, \.socketOptions), .init(.priority, \.priority), .init(.order, \.order),
        .init(.concurrency, optional: \.concurrency), .init(.cacheMode, \.cacheMode),
        .init(.cachePartition, optional: \.cachePartition),
    ]

    /// Reads a configuration.
    /// - Throws: `DecodingError`, also for a value that is out of range.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self = .default
        for setting in SessionConfiguration.settings { try setting.decode(&self, container) }
        // No agent is a choice of its own.
        if container.contains(.userAgent) {
            userAgent = try container.decodeIfPresent(String.self, forKey: .userAgent)
        }
        continueTimeout = try container.duration(.continueTimeout) ?? continueTimeout
    }

    /// Writes the configuration, without secrets and without code.
    /// - Throws: `EncodingError.invalidValue` where a closure decides about trust or about proxies, for a validator, and where a
    ///   root's text holds a private key.
    public func encode(to encoder: any Encoder) throws {
        try validator?.refuseEncoding(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        for setting in SessionConfiguration.settings { try setting.encode(self, &container) }
        try container.encode(userAgent, forKey: .userAgent)
        try container.encode(continueTimeout, forKey: .continueTimeout)
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
