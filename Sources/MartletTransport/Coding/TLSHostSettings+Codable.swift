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
