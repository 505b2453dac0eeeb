import CMartletOpenSSL

/// The verification of the peer's chain: by OpenSSL, then by Martlet's rules for the leaf and the chain, then by the
/// pins. A custom policy decides on the result of OpenSSL and of the rules.
enum CertificateVerification {
    /// OpenSSL's callback for the whole verification; 1 continues the handshake. Because the chain is verified here,
    /// and not after the handshake, a rejected peer receives no application data, and no session with it is stored.
    static let callback: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = { store, _ in
        guard let store = unsafe store else { return 0 }
        let ssl = unsafe ssl(of: store)
        guard let channel = unsafe TLSChannel.of(ssl), let leaf = unsafe X509_STORE_CTX_get0_cert(store) else {
            return 0
        }
        channel.rejection = nil
        channel.evidence = nil
        let rules = channel.context.verification
        if let evaluator = rules.evaluator {
            let verificationError = unsafe verificationError(store, leaf, channel)
            switch channel.decision {
            case nil:
                let chain = unsafe presented(store, host: channel.host, verificationError: verificationError)
                channel.question = { await evaluator.value(chain, chain.host) }
                // Errors left in OpenSSL's queue would end the handshake.
                OpenSSLErrors.clear()
                // The handshake pauses here. OpenSSL calls this callback again when the handshake continues.
                return unsafe martlet_ssl_retry_verify(ssl)
            case .deny(let reason): channel.rejection = .denied(reason: reason)
            case .accept:
                channel.acceptedError = verificationError
                let chain = unsafe verificationError == nil ? verifiedChain(store) : [leaf]
                channel.rejection = unsafe pinError(chain, channel)
            }
        } else if rules.acceptsAny {
            channel.rejection = unsafe pinError([leaf], channel)
        } else {
            channel.rejection = unsafe error(store, leaf, channel)
        }
        guard channel.rejection == nil else {
            // If only Martlet's rules found an error, the peer receives the alert for a bad certificate.
            if unsafe X509_STORE_CTX_get_error(store) == X509_V_OK {
                unsafe X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REJECTED)
            }
            return 0
        }
        unsafe X509_STORE_CTX_set_error(store, X509_V_OK)
        return 1
    }

    private static func ssl(of store: OpaquePointer) -> OpaquePointer? {
        unsafe X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()).map { OpaquePointer($0) }
    }

    /// The error of the chain or of its pins; `nil` if it has none. A chain that the context has verified recently is
    /// compared with the pins, but not verified again.
    private static func error(_ store: OpaquePointer, _ leaf: OpaquePointer, _ channel: TLSChannel)
        -> TLSError.Kind?
    {
        let cache = channel.context.verifiedChains
        let presented = unsafe certificates(X509_STORE_CTX_get0_untrusted(store))
        let isWhole = unsafe presented.first == leaf
        let key = unsafe cache != nil && isWhole ? VerifiedChains.key(host: channel.host, chain: presented) : nil
        if let key, let known = cache?.find(key) { return unsafe pinError([leaf], known: known.candidates, channel) }
        let moment = VerifiedChain.Moment.now()
        if let error = unsafe verificationError(store, leaf, channel) { return error }
        let chain = unsafe verifiedChain(store)
        let error = unsafe pinError(chain, channel)
        if let key { unsafe cache?.insert(key, chain: chain, candidates: channel.evidence, at: moment) }
        return error
    }

    /// The error of the chain; `nil` if it has none.
    private static func verificationError(_ store: OpaquePointer, _ leaf: OpaquePointer, _ channel: TLSChannel)
        -> TLSError.Kind?
    {
        let rules = channel.context.verification
        if !rules.revocation.lists.isEmpty || rules.hasGivenRoots || UnderscoreRule.concerns(channel.host) {
            unsafe X509_STORE_CTX_set_verify_cb(store, overlook)
        }
        guard unsafe X509_verify_cert(store) == 1 else {
            let code = unsafe X509_STORE_CTX_get_error(store)
            let kind = unsafe kind(code: Int(code), leaf: leaf, missingRoots: channel.context.missingRoots)
            if code == X509_V_OK { unsafe X509_STORE_CTX_set_error(store, X509_V_ERR_UNSPECIFIED) }
            return kind
        }
        let parameters = unsafe X509_STORE_CTX_get0_param(store)
        let matched = unsafe X509_VERIFY_PARAM_get0_peername(parameters).map { unsafe String(cString: $0) }
        let chain = unsafe verifiedChain(store)
        // The list of an authority above the anchor, which OpenSSL cannot verify, may revoke the anchor.
        let anchor = unsafe Int(anchorDepth(store, rules))
        if !rules.revokedRoots.isEmpty, anchor == 0 || rules.revocation.scope == .wholeChain,
            let root = unsafe chain.dropFirst(anchor).first,
            unsafe rules.revokedRoots.contains(Certificate.der(of: root))
        {
            return .revoked
        }
        // A chain of one certificate is a root itself.
        let isRoot = unsafe rules.hasGivenRoots && chain.count == 1
        return unsafe LeafRule.verificationError(
            of: leaf, isServer: !channel.context.isServer, matchedName: matched, host: channel.host,
            isNamed: isRoot || rules.pins?.contains(leaf) ?? false, suffixes: rules.suffixes)
            ?? ChainRule.verificationError(of: chain)
    }

    /// Compares the pins with a chain, and stores the compared keys and certificates in the channel.
    /// - Parameter known: The candidates of the chain if they were computed before.
    private static func pinError(_ chain: [OpaquePointer], known: PinCandidates? = nil, _ channel: TLSChannel)
        -> TLSError.Kind?
    {
        guard let pins = channel.context.verification.pins else { return nil }
        let evidence = unsafe known ?? PinCandidates(chain)
        channel.evidence = evidence
        return pins.isSatisfied(by: evidence) ? nil : .pinMismatch(found: evidence.publicKeys)
    }

    private static func presented(_ store: OpaquePointer, host: String, verificationError: TLSError.Kind?)
        -> PresentedChain
    {
        unsafe PresentedChain(
            certificates: certificates(X509_STORE_CTX_get0_untrusted(store)).map(PresentedCertificate.init),
            verified: verificationError == nil
                ? verifiedChain(store).map(PresentedCertificate.init) : [],
            verificationError: verificationError, host: host)
    }

    /// The chain that OpenSSL has built, the trust anchor last.
    private static func verifiedChain(_ store: OpaquePointer) -> [OpaquePointer] {
        unsafe certificates(X509_STORE_CTX_get0_chain(store))
    }

    /// The depth of the trust anchor. From there on, the extensions and the revocation of certificates do not matter
    /// (RFC 5280 §6.1).
    private static func anchorDepth(_ store: OpaquePointer, _ rules: VerificationRules) -> Int32 {
        let last = unsafe martlet_chain_count(X509_STORE_CTX_get0_chain(store)) - 1
        // Any given certificate can be the anchor; otherwise only a root can.
        return unsafe max(0, rules.hasGivenRoots ? min(X509_STORE_CTX_get_num_untrusted(store), last) : last)
    }

    /// The certificates of a chain, which still owns them.
    private static func certificates(_ chain: OpaquePointer?) -> [OpaquePointer] {
        guard let chain = unsafe chain else { return unsafe [] }
        return unsafe (0..<max(0, martlet_chain_count(chain))).compactMap { index in
            unsafe martlet_chain_certificate(chain, index)
        }
    }

    /// Called for each error that OpenSSL finds; 1 ignores it.
    private static let overlook: @convention(c) (Int32, OpaquePointer?) -> Int32 = { isGood, store in
        guard isGood == 0, let store = unsafe store else { return isGood }
        guard let channel = unsafe TLSChannel.of(ssl(of: store)) else { return 0 }
        let rules = channel.context.verification
        let revocation = rules.revocation
        let code = unsafe X509_STORE_CTX_get_error(store)
        let isAnchor = unsafe X509_STORE_CTX_get_error_depth(store) >= anchorDepth(store, rules)
        let isOverlooked =
            switch code {
            // `openssl req -x509` and older tools omit some extensions that authorities must have today.
            case X509_V_ERR_CA_CERT_MISSING_KEY_USAGE, X509_V_ERR_PATHLEN_WITHOUT_KU_KEY_CERT_SIGN,
                X509_V_ERR_MISSING_SUBJECT_KEY_IDENTIFIER, X509_V_ERR_CA_BCONS_NOT_CRITICAL:
                rules.hasGivenRoots && isAnchor
            case X509_V_ERR_HOSTNAME_MISMATCH:
                unsafe X509_STORE_CTX_get0_cert(store).map { leaf in
                    unsafe UnderscoreRule.isNamed(
                        channel.host, among: Certificate.names(of: leaf), suffixes: rules.suffixes)
                } ?? false
            case X509_V_ERR_UNABLE_TO_GET_CRL: isAnchor || revocation.acceptsMissingLists
            case X509_V_ERR_CRL_HAS_EXPIRED: isAnchor || revocation.acceptsExpiredLists
            // OpenSSL 3.0 needs a list for the anchor, too, and cannot verify one from an authority above it.
            default:
                if isAnchor, case .revocationUnknown = unsafe kind(code: Int(code), leaf: nil, missingRoots: nil) {
                    true
                } else {
                    false
                }
            }
        guard isOverlooked else { return 0 }
        unsafe X509_STORE_CTX_set_error(store, X509_V_OK)
        return 1
    }

    /// The error for the result of a verification.
    /// - Parameter missingRoots: The searched paths if no roots were found; else `nil`.
    static func kind(code: Int, leaf: OpaquePointer?, missingRoots: [String]?) -> TLSError.Kind {
        let text = unsafe X509_verify_cert_error_string(code).map { unsafe String(cString: $0) }
        let reason = text ?? "unknown error"
        switch Int32(truncatingIfNeeded: code) {
        case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH:
            return unsafe .nameMismatch(leaf.map { unsafe Certificate.names(of: $0) } ?? [])
        case X509_V_ERR_CERT_HAS_EXPIRED: return .expired
        case X509_V_ERR_CERT_NOT_YET_VALID: return .notYetValid
        case X509_V_ERR_CERT_REVOKED: return .revoked
        case X509_V_ERR_UNABLE_TO_GET_CRL, X509_V_ERR_CRL_HAS_EXPIRED, X509_V_ERR_CRL_NOT_YET_VALID,
            X509_V_ERR_CRL_SIGNATURE_FAILURE, X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER,
            X509_V_ERR_UNABLE_TO_DECRYPT_CRL_SIGNATURE, X509_V_ERR_ERROR_IN_CRL_LAST_UPDATE_FIELD,
            X509_V_ERR_ERROR_IN_CRL_NEXT_UPDATE_FIELD, X509_V_ERR_KEYUSAGE_NO_CRL_SIGN,
            X509_V_ERR_UNHANDLED_CRITICAL_CRL_EXTENSION, X509_V_ERR_DIFFERENT_CRL_SCOPE,
            X509_V_ERR_CRL_PATH_VALIDATION_ERROR:
            return .revocationUnknown(reason: reason)
        case X509_V_ERR_EE_KEY_TOO_SMALL, X509_V_ERR_CA_KEY_TOO_SMALL: return .weakKey(reason: reason)
        case X509_V_ERR_CA_MD_TOO_WEAK: return .weakSignature(reason: reason)
        case X509_V_ERR_INVALID_PURPOSE: return .wrongPurpose(reason: reason)
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT where missingRoots == nil: return .selfSigned
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN,
            X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
            X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, X509_V_ERR_CERT_UNTRUSTED:
            if let missingRoots { return .noTrustRoots(searched: missingRoots) }
            return .unknownAuthority
        default: return .badCertificate(reason: reason, code: code)
        }
    }
}

/// The rules of a context for the peer's chain, in addition to those in OpenSSL's settings.
struct VerificationRules: Sendable {
    /// Whether any chain is accepted, without verification.
    var acceptsAny = false
    /// Whether there are roots in addition to the machine's.
    var hasGivenRoots = false
    var pins: PinSet?
    var evaluator: Identified<TrustPolicy.Evaluator>?
    var suffixes = PublicSuffixRule.singleLabel
    var revocation = RevocationPolicy.none
    /// The given certificates that a given list revokes, in DER.
    var revokedRoots: Set<[UInt8]> = []
}
