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
