import Martlet

extension TLSError {
    /// OpenSSL's number for why a chain was refused, as `-w` has it; `nil` where the chain was good or none came.
    ///
    /// Of the numbers for an authority that is not trusted it is the most frequent.
    var verificationCode: Int? {
        switch kind {
        case .nameMismatch: 1
        case .notYetValid: 9
        case .expired: 10
        case .selfSigned: 18
        case .unknownAuthority, .noTrustRoots: 20
        case .revoked: 23
        case .revocationUnknown: 3
        case .wrongPurpose: 26
        case .weakKey: 66
        case .weakSignature: 68
        case .badCertificate(_, let code): code
        default: nil
        }
    }
}
