extension TLSSettings: Codable {
    /// Reads settings, without an identity. Missing properties get their defaults.
    /// - Throws: `DecodingError`, also for a value that is out of range.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: SettingCodingKey.self)
        self.init()
        trust = try container.value("trust", or: trust)
        verifiesHostName = try container.value("verifiesHostName", or: verifiesHostName)
        minimumVersion = try container.value("minimumVersion", or: minimumVersion)
        maximumVersion = try container.value("maximumVersion", or: maximumVersion)
        cipherList = try container.decodeIfPresent(String.self, forKey: "cipherList")
        cipherSuites = try container.decodeIfPresent(String.self, forKey: "cipherSuites")
        applicationProtocols = try container.value("applicationProtocols", or: applicationProtocols)
        keyLogFile = try container.decodeIfPresent(String.self, forKey: "keyLogFile")
        usesSessionTickets = try container.value("usesSessionTickets", or: usesSessionTickets)
        securityLevel = try container.number("securityLevel", in: 0...5, or: securityLevel)
        revocation = try container.value("revocation", or: revocation)
        hosts = try container.value("hosts", or: hosts)
        if try container.value("onlySingleLabelSuffixes", or: false) { publicSuffixes = .singleLabel }
    }

    /// Writes the settings. Identities are omitted: private keys and pass phrases are never encoded.
    /// - Throws: `EncodingError.invalidValue` for a trust policy or a public suffix rule that is a closure, which
    ///   cannot be encoded, and for a text that contains a private key.
    public func encode(to encoder: any Encoder) throws {
        let onlySingleLabels = publicSuffixes == .singleLabel
        guard onlySingleLabels || publicSuffixes == .system else {
            throw encoder.rejection(of: publicSuffixes, "a public suffix rule that is a closure cannot be encoded")
        }
        var container = encoder.container(keyedBy: SettingCodingKey.self)
        try container.encode(trust, forKey: "trust")
        try container.encode(verifiesHostName, forKey: "verifiesHostName")
        try container.encode(minimumVersion, forKey: "minimumVersion")
        try container.encode(maximumVersion, forKey: "maximumVersion")
        try container.encodeIfPresent(cipherList, forKey: "cipherList")
        try container.encodeIfPresent(cipherSuites, forKey: "cipherSuites")
        try container.encode(applicationProtocols, forKey: "applicationProtocols")
        try container.encodeIfPresent(keyLogFile, forKey: "keyLogFile")
        try container.encode(usesSessionTickets, forKey: "usesSessionTickets")
        try container.encode(securityLevel, forKey: "securityLevel")
        try container.encode(revocation, forKey: "revocation")
        try container.encode(hosts, forKey: "hosts")
        if onlySingleLabels { try container.encode(true, forKey: "onlySingleLabelSuffixes") }
    }
}

extension TLSHostOverrides: Codable {
    /// Reads the rules from a dictionary by pattern.
    public init(from decoder: any Decoder) throws {
        self.init()
        let rules = try decoder.singleValueContainer().decode([String: TLSHostSettings].self)
        for (pattern, rule) in rules { self[pattern] = rule }
    }

    /// Writes the rules as a dictionary by pattern, without identities.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(byPattern)
    }
}

extension TrustPolicy: Codable {
    /// Reads a policy. Missing properties get their values in ``system``.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: SettingCodingKey.self)
        self = .system
        usesSystemRoots = try container.value("usesSystemRoots", or: true)
        roots = try container.value("roots", or: [])
        acceptsAnyCertificate = try container.value("acceptsAnyCertificate", or: false)
        let keys = try container.decodeIfPresent(Set<PublicKeyPin>.self, forKey: "pinnedPublicKeys")
        let certificates = try container.value("pinnedCertificates", or: [PEMSource]())
        if keys != nil || !certificates.isEmpty {
            pins = CertificatePins(
                publicKeys: keys, certificates: certificates,
                scope: try container.value("pinsLeafAlone", or: false) ? .leaf : .verifiedChain)
        }
    }

    /// Writes the policy.
    /// - Throws: `EncodingError.invalidValue` for a custom policy: without its closure it would trust other chains.
    public func encode(to encoder: any Encoder) throws {
        guard evaluator == nil else {
            throw encoder.rejection(of: self, "a custom trust policy is a closure, which cannot be encoded")
        }
        var container = encoder.container(keyedBy: SettingCodingKey.self)
        try container.encode(usesSystemRoots, forKey: "usesSystemRoots")
        try container.encode(roots, forKey: "roots")
        if acceptsAnyCertificate { try container.encode(true, forKey: "acceptsAnyCertificate") }
        guard let pins else { return }
        let keys = pins.publicKeys?.sorted { $0.description < $1.description }
        try container.encodeIfPresent(keys, forKey: "pinnedPublicKeys")
        try container.encode(pins.certificates, forKey: "pinnedCertificates")
        try container.encode(pins.scope == .leaf, forKey: "pinsLeafAlone")
    }
}

extension RevocationPolicy: Codable {
    /// Reads a policy. Missing properties get their strictest value.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: SettingCodingKey.self)
        lists = try container.value("lists", or: [])
        scope = try container.value("isForWholeChain", or: true) ? .wholeChain : .leaf
        acceptsExpiredLists = try container.value("acceptsExpiredLists", or: false)
        acceptsMissingLists = try container.value("acceptsMissingLists", or: false)
    }

    /// Writes the policy.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: SettingCodingKey.self)
        try container.encode(lists, forKey: "lists")
        try container.encode(scope == .wholeChain, forKey: "isForWholeChain")
        try container.encode(acceptsExpiredLists, forKey: "acceptsExpiredLists")
        try container.encode(acceptsMissingLists, forKey: "acceptsMissingLists")
    }
}

extension PublicKeyPin: Codable {
    /// Reads a pin in the form of ``init(_:)``.
    /// - Throws: `DecodingError.dataCorrupted` for other text.
    public init(from decoder: any Decoder) throws {
        let text = try decoder.singleValueContainer().decode(String.self)
        do throws(TLSError) { try self.init(text) } catch {
            throw DecodingError.dataCorrupted(
                DecodingError.Context(
                    codingPath: decoder.codingPath, debugDescription: error.description, underlyingError: error))
        }
    }

    /// Writes the pin as ``description``.
    public func encode(to encoder: any Encoder) throws { try description.encode(to: encoder) }
}

extension PEMSource: Codable {
    /// Reads a source: the path of a file, a text, or bytes.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: SettingCodingKey.self)
        if let path = try container.decodeIfPresent(String.self, forKey: "file") {
            self = .file(path)
        } else if let text = try container.decodeIfPresent(String.self, forKey: "text") {
            self = .text(text)
        } else {
            self = .bytes(try container.decode([UInt8].self, forKey: "bytes"))
        }
    }

    /// Writes the source: a file as its path, a text or bytes in memory unchanged.
    /// - Throws: `EncodingError.invalidValue` for a text that contains a private key: keys are never encoded.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: SettingCodingKey.self)
        switch storage {
        case .file(let path): try container.encode(path, forKey: "file")
        case .bytes(let bytes):
            let text = String(decoding: bytes, as: UTF8.self)
            guard !text.contains("PRIVATE KEY") else {
                throw encoder.rejection(of: self, "private keys are never encoded")
            }
            if text.utf8.elementsEqual(bytes) {
                try container.encode(text, forKey: "text")
            } else {
                try container.encode(bytes, forKey: "bytes")
            }
        }
    }
}

extension ProxyServer: Codable {
    /// Reads a proxy, without credentials. A missing port is 1080.
    /// - Throws: `DecodingError`, also for an invalid scheme, host or port.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: SettingCodingKey.self)
        let scheme = try container.decode(String.self, forKey: "scheme")
        guard let kind = Kind.all.first(where: { $0.scheme == scheme }) else {
            throw DecodingError.dataCorruptedError(
                forKey: "scheme", in: container, debugDescription: "“\(scheme)” is not a proxy scheme")
        }
        let host = try container.decode(String.self, forKey: "host")
        let allowed = "abcdefghijklmnopqrstuvwxyz0123456789-._:"
        guard (1...255).contains(host.utf8.count), host.utf8.allSatisfy({ allowed.utf8.contains($0) }) else {
            throw DecodingError.dataCorruptedError(
                forKey: "host", in: container,
                debugDescription: "a host must be a name in lower-case ASCII, or an address without brackets")
        }
        self.init(
            kind: kind, host: host, port: try container.number("port", in: 1...65_535, or: 1080),
            tls: try container.value("tls", or: TLSSettings()),
            alwaysTunnels: try container.value("alwaysTunnels", or: false))
    }

    /// Writes the proxy. Credentials and identities are omitted: secrets are never encoded.
    /// - Throws: `EncodingError.invalidValue` like ``TLSSettings/encode(to:)``.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: SettingCodingKey.self)
        try container.encode(kind.scheme, forKey: "scheme")
        try container.encode(host, forKey: "host")
        try container.encode(port, forKey: "port")
        if kind == .https { try container.encode(tls, forKey: "tls") }
        try container.encode(alwaysTunnels, forKey: "alwaysTunnels")
    }
}

extension SocketAddress: Codable {
    /// Reads an address: a literal and a port, or the path of a unix domain socket.
    /// - Throws: `DecodingError`, also for an invalid literal, port or path.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: SettingCodingKey.self)
        let path = try container.decodeIfPresent(String.self, forKey: "path")
        let text = try path ?? container.decode(String.self, forKey: "host")
        let found =
            path == nil
            ? SocketAddress(literal: text, port: try container.decode(Int.self, forKey: "port"))
            : SocketAddress(unixPath: text)
        guard let found else {
            throw DecodingError.dataCorrupted(
                DecodingError.Context(codingPath: decoder.codingPath, debugDescription: "“\(text)” is not an address"))
        }
        self = found
    }

    /// Writes the address.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: SettingCodingKey.self)
        try container.encode(host, forKey: port == nil ? "path" : "host")
        try container.encodeIfPresent(port, forKey: "port")
    }
}

/// A coding key with any name. All settings share this type, because each enum of keys would add 3 KB of code.
private struct SettingCodingKey: CodingKey, ExpressibleByStringLiteral {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringLiteral name: String) { stringValue = name }
    init?(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { return nil }
}

extension Encoder {
    fileprivate func rejection(of value: Any, _ reason: String) -> EncodingError {
        .invalidValue(value, EncodingError.Context(codingPath: codingPath, debugDescription: reason))
    }
}

extension KeyedDecodingContainer {
    /// Decodes the value of a key; returns the default if the key is missing, as in data of an earlier version.
    package func value<Value: Decodable>(_ key: Key, or standard: Value) throws -> Value {
        try decodeIfPresent(Value.self, forKey: key) ?? standard
    }

    /// Decodes a value that may be `nil`, for a `null`; returns the default if the key is missing.
    package func optional<Value: Decodable>(_ key: Key, or standard: Value?) throws -> Value? {
        try contains(key) ? decodeIfPresent(Value.self, forKey: key) : standard
    }

    /// Decodes a number; returns the default if the key is missing.
    /// - Throws: `DecodingError.dataCorrupted` for a number outside of the range.
    package func number(_ key: Key, in range: some RangeExpression<Int>, or standard: Int) throws -> Int {
        let number = try value(key, or: standard)
        guard range.contains(number) else {
            throw DecodingError.dataCorruptedError(forKey: key, in: self, debugDescription: "\(number) is out of range")
        }
        return number
    }

    /// Decodes a duration; returns `nil` if it is missing or null.
    /// - Throws: `DecodingError.dataCorrupted` for a negative duration.
    package func duration(_ key: Key) throws -> Duration? {
        guard let duration = try decodeIfPresent(Duration.self, forKey: key) else { return nil }
        guard duration >= .zero else {
            throw DecodingError.dataCorruptedError(
                forKey: key, in: self, debugDescription: "a duration must not be negative")
        }
        return duration
    }
}
