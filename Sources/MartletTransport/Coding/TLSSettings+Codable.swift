extension TLSSettings: Codable {
    private enum CodingKeys: String, CodingKey {
        case trust
        case verifiesHostName
        case minimumVersion
        case maximumVersion
        case cipherList
        case cipherSuites
        case applicationProtocols
        case keyLogFile
        case usesSessionTickets
        case securityLevel
        case revocation
        case hosts
        case onlySingleLabelSuffixes
    }

    /// Reads settings, without an identity. What is missing has its default.
    /// - Throws: `DecodingError`, also for a value that is out of range.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init()
        trust = try container.value(.trust, or: trust)
        verifiesHostName = try container.value(.verifiesHostName, or: verifiesHostName)
        minimumVersion = try container.value(.minimumVersion, or: minimumVersion)
        maximumVersion = try container.value(.maximumVersion, or: maximumVersion)
        cipherList = try container.decodeIfPresent(String.self, forKey: .cipherList)
        cipherSuites = try container.decodeIfPresent(String.self, forKey: .cipherSuites)
        applicationProtocols = try container.value(.applicationProtocols, or: applicationProtocols)
        keyLogFile = try container.decodeIfPresent(String.self, forKey: .keyLogFile)
        usesSessionTickets = try container.value(.usesSessionTickets, or: usesSessionTickets)
        securityLevel = try container.number(.securityLevel, in: 0...5, or: securityLevel)
        revocation = try container.value(.revocation, or: revocation)
        hosts = try container.value(.hosts, or: hosts)
        if try container.value(.onlySingleLabelSuffixes, or: false) { publicSuffixes = .singleLabel }
    }

    /// Writes the settings. Identities are left out: private keys and pass phrases are never encoded.
    /// - Throws: `EncodingError.invalidValue` where a closure decides about trust or about public suffixes: without it
    ///   others would be trusted.
    public func encode(to encoder: any Encoder) throws {
        let onlySingleLabels = publicSuffixes == .singleLabel
        guard onlySingleLabels || publicSuffixes == .system else {
            throw EncodingError.invalidValue(
                publicSuffixes,
                EncodingError.Context(
                    codingPath: encoder.codingPath,
                    debugDescription: "a rule of public suffixes that is a closure cannot be encoded"))
        }
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(trust, forKey: .trust)
        try container.encode(verifiesHostName, forKey: .verifiesHostName)
        try container.encode(minimumVersion, forKey: .minimumVersion)
        try container.encode(maximumVersion, forKey: .maximumVersion)
        try container.encodeIfPresent(cipherList, forKey: .cipherList)
        try container.encodeIfPresent(cipherSuites, forKey: .cipherSuites)
        try container.encode(applicationProtocols, forKey: .applicationProtocols)
        try container.encodeIfPresent(keyLogFile, forKey: .keyLogFile)
        try container.encode(usesSessionTickets, forKey: .usesSessionTickets)
        try container.encode(securityLevel, forKey: .securityLevel)
        try container.encode(revocation, forKey: .revocation)
        try container.encode(hosts, forKey: .hosts)
        if onlySingleLabels { try container.encode(true, forKey: .onlySingleLabelSuffixes) }
    }
}

extension TLSHostRules: Codable {
    /// Reads rules by their patterns.
    public init(from decoder: any Decoder) throws {
        self.init()
        let rules = try decoder.singleValueContainer().decode([String: TLSHostSettings].self)
        for (pattern, rule) in rules { self[pattern] = rule }
    }

    /// Writes the rules by their patterns, without identities.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(byPattern)
    }
}

extension TLSHostSettings: Codable {
    private enum CodingKeys: String, CodingKey {
        case trust
        case showsNoIdentity
        case revocation
        case verifiesHostName
    }

    /// Reads settings, without an identity.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            trust: try container.decodeIfPresent(TrustPolicy.self, forKey: .trust),
            showsNoIdentity: try container.value(.showsNoIdentity, or: false),
            revocation: try container.decodeIfPresent(RevocationPolicy.self, forKey: .revocation),
            verifiesHostName: try container.decodeIfPresent(Bool.self, forKey: .verifiesHostName))
    }

    /// Writes the settings. The identity is left out: private keys and pass phrases are never encoded.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encodeIfPresent(trust, forKey: .trust)
        try container.encode(showsNoIdentity, forKey: .showsNoIdentity)
        try container.encodeIfPresent(revocation, forKey: .revocation)
        try container.encodeIfPresent(verifiesHostName, forKey: .verifiesHostName)
    }
}

extension TrustPolicy: Codable {
    private enum CodingKeys: String, CodingKey {
        case usesSystemRoots
        case roots
        case acceptsAnyCertificate
        case pinnedPublicKeys
        case pinnedCertificates
        case pinsLeafAlone
    }

    /// Reads a policy. What is missing is as in ``system``.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        var policy = TrustPolicy.system
        policy.usesSystemRoots = try container.value(.usesSystemRoots, or: true)
        policy.roots = try container.value(.roots, or: [])
        policy.acceptsAnyCertificate = try container.value(.acceptsAnyCertificate, or: false)
        let keys = try container.decodeIfPresent(Set<PublicKeyPin>.self, forKey: .pinnedPublicKeys)
        let certificates = try container.value(.pinnedCertificates, or: [PEMSource]())
        if keys != nil || !certificates.isEmpty {
            var pins = CertificatePins(publicKeys: keys, certificates: certificates)
            pins.scope = try container.value(.pinsLeafAlone, or: false) ? .leaf : .verifiedChain
            policy.pins = pins
        }
        self = policy
    }

    /// Writes the policy.
    /// - Throws: `EncodingError.invalidValue` where a closure decides: without it the policy would trust others.
    public func encode(to encoder: any Encoder) throws {
        guard evaluator == nil else {
            throw EncodingError.invalidValue(
                self,
                EncodingError.Context(
                    codingPath: encoder.codingPath,
                    debugDescription: "a trust policy that a closure decides cannot be encoded"))
        }
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(usesSystemRoots, forKey: .usesSystemRoots)
        try container.encode(roots, forKey: .roots)
        if acceptsAnyCertificate { try container.encode(true, forKey: .acceptsAnyCertificate) }
        guard let pins else { return }
        let keys = pins.publicKeys?.sorted { $0.description < $1.description }
        try container.encodeIfPresent(keys, forKey: .pinnedPublicKeys)
        try container.encode(pins.certificates, forKey: .pinnedCertificates)
        try container.encode(pins.scope == .leaf, forKey: .pinsLeafAlone)
    }
}

extension RevocationPolicy: Codable {
    private enum CodingKeys: String, CodingKey {
        case lists
        case isForWholeChain
        case acceptsExpiredLists
        case acceptsMissingLists
    }

    /// Reads a policy. What is missing is at its strictest.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        lists = try container.value(.lists, or: [])
        scope = try container.value(.isForWholeChain, or: true) ? .wholeChain : .leaf
        acceptsExpiredLists = try container.value(.acceptsExpiredLists, or: false)
        acceptsMissingLists = try container.value(.acceptsMissingLists, or: false)
    }

    /// Writes the policy.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(lists, forKey: .lists)
        try container.encode(scope == .wholeChain, forKey: .isForWholeChain)
        try container.encode(acceptsExpiredLists, forKey: .acceptsExpiredLists)
        try container.encode(acceptsMissingLists, forKey: .acceptsMissingLists)
    }
}

extension PublicKeyPin: Codable {
    /// Reads a pin as text, as ``init(_:)`` takes it.
    /// - Throws: `DecodingError.dataCorrupted` for a text that is none.
    public init(from decoder: any Decoder) throws {
        let text = try decoder.singleValueContainer().decode(String.self)
        do throws(TLSError) {
            try self.init(text)
        } catch {
            throw DecodingError.dataCorrupted(
                DecodingError.Context(
                    codingPath: decoder.codingPath, debugDescription: error.description,
                    underlyingError: error))
        }
    }

    /// Writes the pin as ``description``.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}

extension PEMSource: Codable {
    private enum CodingKeys: String, CodingKey {
        case file
        case text
        case bytes
    }

    /// Reads a source: the path of a file, a text, or bytes.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        if let path = try container.decodeIfPresent(String.self, forKey: .file) {
            self = .file(path)
        } else if let text = try container.decodeIfPresent(String.self, forKey: .text) {
            self = .text(text)
        } else {
            self = .bytes(try container.decode([UInt8].self, forKey: .bytes))
        }
    }

    /// Writes the source: certificates and lists in memory as they are, files by their path.
    /// - Throws: `EncodingError.invalidValue` for a text that holds a private key: keys are never encoded.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        switch place {
        case .file(let path): try container.encode(path, forKey: .file)
        case .bytes(let bytes):
            let text = String(decoding: bytes, as: UTF8.self)
            guard !text.contains("PRIVATE KEY") else {
                throw EncodingError.invalidValue(
                    self,
                    EncodingError.Context(
                        codingPath: encoder.codingPath, debugDescription: "private keys are never encoded"))
            }
            if text.utf8.elementsEqual(bytes) {
                try container.encode(text, forKey: .text)
            } else {
                try container.encode(bytes, forKey: .bytes)
            }
        }
    }
}

extension KeyedDecodingContainer {
    /// The value of a key; the default where the key is missing, as in what an earlier version encoded.
    package func value<Value: Decodable>(_ key: Key, or standard: Value) throws -> Value {
        try decodeIfPresent(Value.self, forKey: key) ?? standard
    }

    /// A number of a key within a range; the default where the key is missing.
    /// - Throws: `DecodingError.dataCorrupted` for one that is out of range.
    package func number(_ key: Key, in range: some RangeExpression<Int>, or standard: Int) throws -> Int {
        let number = try value(key, or: standard)
        guard range.contains(number) else {
            throw DecodingError.dataCorruptedError(
                forKey: key, in: self, debugDescription: "\(number) is out of range")
        }
        return number
    }

    /// A duration of a key, which must not be negative; `nil` where it is missing or null.
    /// - Throws: `DecodingError.dataCorrupted` for a negative one.
    package func duration(_ key: Key) throws -> Duration? {
        guard let duration = try decodeIfPresent(Duration.self, forKey: key) else { return nil }
        guard duration >= .zero else {
            throw DecodingError.dataCorruptedError(
                forKey: key, in: self, debugDescription: "a duration must not be negative")
        }
        return duration
    }
}
