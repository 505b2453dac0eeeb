import MartletTransport

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
