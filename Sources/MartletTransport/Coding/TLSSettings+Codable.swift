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
