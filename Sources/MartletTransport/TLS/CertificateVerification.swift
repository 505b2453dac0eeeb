import COpenSSL

/// The verification of the peer's chain: OpenSSL's, then Martlet's rule for the leaf.
enum CertificateVerification {
    /// OpenSSL's callback for the whole of the verification: 1 lets the handshake go on.
    ///
    /// Here rather than after the handshake, so that no byte of the application's is sent to a peer that is
    /// refused, and no session with it is kept.
    static let callback: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = { store, _ in
        guard let store = unsafe store else { return 0 }
        let index = SSL_get_ex_data_X509_STORE_CTX_idx()
        let ssl = unsafe X509_STORE_CTX_get_ex_data(store, index)
        guard let channel = unsafe TLSChannel.of(ssl.map { OpaquePointer($0) }) else { return 0 }
        let isTrusted = unsafe X509_verify_cert(store) == 1
        guard let leaf = unsafe X509_STORE_CTX_get0_cert(store) else { return 0 }
        guard isTrusted else {
            let code = unsafe X509_STORE_CTX_get_error(store)
            if code == X509_V_ERR_HOSTNAME_MISMATCH || code == X509_V_ERR_IP_ADDRESS_MISMATCH {
                unsafe channel.refusedNames = Certificate.names(of: leaf)
            }
            return 0
        }
        let purpose: LeafRule.Purpose = channel.context.isServer ? .client : .server
        let parameters = unsafe X509_STORE_CTX_get0_param(store)
        let matched = unsafe X509_VERIFY_PARAM_get0_peername(parameters).map { unsafe String(cString: $0) }
        switch unsafe LeafRule.verdict(on: leaf, for: purpose, matchedName: matched) {
        case .good:
            return 1
        case .wrongName:
            unsafe channel.refusedNames = Certificate.names(of: leaf)
            unsafe X509_STORE_CTX_set_error(store, X509_V_ERR_HOSTNAME_MISMATCH)
        case .refused(let reason):
            channel.refusal = reason
            unsafe X509_STORE_CTX_set_error(store, X509_V_ERR_INVALID_PURPOSE)
        }
        return 0
    }

    /// What a verification's result is called.
    static func kind(code: Int, channel: TLSChannel) -> TLSError.Kind {
        if let refusal = channel.refusal { return .badCertificate(reason: refusal, code: code) }
        let isWithoutRoots = channel.context.missingRoots != nil
        switch Int32(truncatingIfNeeded: code) {
        case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH:
            return .nameMismatch(channel.refusedNames)
        case X509_V_ERR_CERT_HAS_EXPIRED:
            return .expired
        case X509_V_ERR_CERT_NOT_YET_VALID:
            return .notYetValid
        case X509_V_ERR_CERT_REVOKED:
            return .revoked
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT where !isWithoutRoots:
            return .selfSigned
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN,
            X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
            X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, X509_V_ERR_CERT_UNTRUSTED:
            if let searched = channel.context.missingRoots { return .noTrustRoots(searched: searched) }
            return .unknownAuthority
        default:
            let text = unsafe X509_verify_cert_error_string(code).map { unsafe String(cString: $0) }
            return .badCertificate(reason: text ?? "unknown fault", code: code)
        }
    }
}
