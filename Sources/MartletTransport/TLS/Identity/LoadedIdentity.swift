/// An identity that was read: certificate, key and the authorities between.
struct LoadedIdentity {
    let leaf: Certificate
    let key: PrivateKey
    let authorities: [Certificate]
    /// Where certificate and key came from, for errors.
    let certificateSource: String
    let keySource: String

    /// The same identity, made anew from its bytes; `nil` when that fails.
    func copied() -> LoadedIdentity? {
        let certificates = ([leaf] + authorities).compactMap { certificate in
            PEMReader.certificates(in: unsafe Certificate.der(of: certificate.pointer))?.first
        }
        guard certificates.count == authorities.count + 1, let key = key.copied() else { return nil }
        return LoadedIdentity(
            leaf: certificates[0], key: key, authorities: Array(certificates.dropFirst()),
            certificateSource: certificateSource, keySource: keySource)
    }
}
