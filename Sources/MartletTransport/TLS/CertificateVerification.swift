import COpenSSL

/// The verification of the peer's chain: OpenSSL's, then Martlet's rules for the chain and the leaf, then the pins; or what
/// a custom policy makes of all that.
enum CertificateVerification {
    /// OpenSSL's callback for the whole of the verification: 1 lets the handshake go on.
    ///
    /// Here rather than after the handshake, so that no byte of the application's is sent to a peer that is
    /// refused, and no session with it is kept.
    static let callback: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = { store, _ in
        guard let store = unsafe store else { return 0 }
        let index = SSL_get_ex_data_X509_STORE_CTX_idx()
        let ssl = unsafe X509_STORE_CTX_get_ex_data(store, index).map { OpaquePointer($0) }
        guard let channel = unsafe TLSChannel.of(ssl), let leaf = unsafe X509_STORE_CTX_get0_cert(store)
        else { return 0 }
        channel.refusal = nil
        channel.evidence = nil
        let rules = channel.context.verification
        if let evaluator = rules.evaluator {
            let fault = unsafe fault(store, leaf, channel)
            switch channel.decision {
            case nil:
                unsafe channel.question = TrustQuestion(
                    evaluator: evaluator, chain: presented(store, host: channel.host, fault: fault))
                // Left in the queue, what was found would end the handshake.
                OpenSSLErrors.clear()
                // The handshake stops here, and this is called again when it goes on.
                return unsafe martlet_ssl_retry_verify(ssl)
            case .deny(let reason): channel.refusal = .denied(reason: reason)
            case .accept:
                channel.acceptedFault = fault
                channel.refusal = unsafe pinFault(store, leaf, rules.pins, isVerified: fault == nil, channel)
            }
        } else if rules.acceptsAny {
            channel.refusal = unsafe pinFault(store, leaf, rules.pins, isVerified: false, channel)
        } else {
            channel.refusal =
                unsafe fault(store, leaf, channel)
                ?? pinFault(store, leaf, rules.pins, isVerified: true, channel)
        }
        guard channel.refusal == nil else {
            // Where OpenSSL found no fault, it is to tell the peer of a bad certificate.
            if unsafe X509_STORE_CTX_get_error(store) == X509_V_OK {
                unsafe X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REJECTED)
            }
            return 0
        }
        unsafe X509_STORE_CTX_set_error(store, X509_V_OK)
        return 1
    }

    /// What is wrong with the chain; `nil` when nothing is.
    private static func fault(
        _ store: OpaquePointer, _ leaf: OpaquePointer, _ channel: TLSChannel
    ) -> TLSError.Kind? {
        let rules = channel.context.verification
        if rules.revocation.acceptsExpiredLists || rules.revocation.acceptsMissingLists || rules.hasGivenRoots
            || UnderscoreRule.concerns(channel.host)
        {
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
        let chain = unsafe certificates(X509_STORE_CTX_get0_chain(store))
        // A chain of one is a certificate that is a root itself.
        let isRoot = unsafe rules.hasGivenRoots && chain.count == 1
        let verdict = unsafe LeafRule.verdict(
            on: leaf, for: channel.context.isServer ? .client : .server, matchedName: matched,
            host: channel.host, isNamed: isRoot || rules.pins?.contains(leaf) ?? false,
            suffixes: rules.suffixes)
        switch verdict {
        case .good: break
        case .wrongName: return unsafe .nameMismatch(Certificate.names(of: leaf))
        case .refused(let kind): return kind
        }
        return unsafe ChainRule.fault(of: chain)
    }

    /// Compares the pins, and notes what they were compared with.
    private static func pinFault(
        _ store: OpaquePointer, _ leaf: OpaquePointer, _ pins: PinSet?, isVerified: Bool,
        _ channel: TLSChannel
    ) -> TLSError.Kind? {
        guard let pins else { return nil }
        let chain = unsafe isVerified ? certificates(X509_STORE_CTX_get0_chain(store)) : [leaf]
        let evidence = unsafe ChainEvidence(chain)
        channel.evidence = evidence
        return pins.isSatisfied(by: evidence) ? nil : .pinMismatch(found: evidence.publicKeys)
    }

    private static func presented(
        _ store: OpaquePointer, host: String, fault: TLSError.Kind?
    ) -> PresentedChain {
        unsafe PresentedChain(
            certificates: certificates(X509_STORE_CTX_get0_untrusted(store)).map {
                unsafe PresentedCertificate($0)
            },
            verified: fault == nil
                ? certificates(X509_STORE_CTX_get0_chain(store)).map { unsafe PresentedCertificate($0) } : [],
            fault: fault, host: host)
    }

    /// The certificates of a chain, which belong to the chain.
    private static func certificates(_ chain: OpaquePointer?) -> [OpaquePointer] {
        guard let chain = unsafe chain else { return unsafe [] }
        return unsafe (0..<max(0, martlet_chain_count(chain))).compactMap { index in
            unsafe martlet_chain_certificate(chain, index)
        }
    }

    /// Called for each fault that OpenSSL finds; 1 passes over it.
    private static let overlook: @convention(c) (Int32, OpaquePointer?) -> Int32 = { isGood, store in
        guard isGood == 0, let store = unsafe store else { return isGood }
        let ssl = unsafe X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx())
        guard let channel = unsafe TLSChannel.of(ssl.map { OpaquePointer($0) }) else { return 0 }
        let rules = channel.context.verification
        let revocation = rules.revocation
        let isOverlooked =
            switch unsafe X509_STORE_CTX_get_error(store) {
            // What a root may be used for is for whoever gave it to say, and `openssl req -x509` and older tools leave out
            // what is demanded of authorities today (RFC 5280 §6.1 looks at no extension of a trust anchor).
            case X509_V_ERR_CA_CERT_MISSING_KEY_USAGE, X509_V_ERR_PATHLEN_WITHOUT_KU_KEY_CERT_SIGN,
                X509_V_ERR_MISSING_SUBJECT_KEY_IDENTIFIER, X509_V_ERR_CA_BCONS_NOT_CRITICAL:
                unsafe rules.hasGivenRoots
                    && X509_STORE_CTX_get_error_depth(store)
                        == martlet_chain_count(X509_STORE_CTX_get0_chain(store)) - 1
            case X509_V_ERR_HOSTNAME_MISMATCH:
                unsafe X509_STORE_CTX_get0_cert(store).map { leaf in
                    unsafe UnderscoreRule.isNamed(
                        channel.host, among: Certificate.names(of: leaf), suffixes: rules.suffixes)
                } ?? false
            case X509_V_ERR_UNABLE_TO_GET_CRL: revocation.acceptsMissingLists
            case X509_V_ERR_CRL_HAS_EXPIRED: revocation.acceptsExpiredLists
            default: false
            }
        guard isOverlooked else { return 0 }
        unsafe X509_STORE_CTX_set_error(store, X509_V_OK)
        return 1
    }

    /// What a verification's result is called.
    /// - Parameter missingRoots: Where roots were looked for, when there are none.
    static func kind(code: Int, leaf: OpaquePointer?, missingRoots: [String]?) -> TLSError.Kind {
        let text = unsafe X509_verify_cert_error_string(code).map { unsafe String(cString: $0) }
        let reason = text ?? "unknown fault"
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

/// What a peer's own certificate must be, beyond what OpenSSL asks of it.
enum LeafRule {
    /// What the certificate is shown for.
    enum Purpose {
        case server
        case client
    }

    /// What the rule says.
    enum Verdict: Equatable {
        case good
        /// The name fits by a wildcard that stands for too much.
        case wrongName
        case refused(TLSError.Kind)
    }

    /// Judges a leaf whose chain is valid.
    /// - Parameters:
    ///   - matchedName: The certificate's name that fitted the host, when one was asked for.
    ///   - host: The host.
    ///   - isNamed: Whether this very certificate is pinned, or given as a root, and so may be an authority's, as those
    ///     that `openssl req -x509` makes are.
    static func verdict(
        on leaf: OpaquePointer, for purpose: Purpose, matchedName: String? = nil, host: String = "",
        isNamed: Bool = false, suffixes: PublicSuffixRule = .singleLabel
    ) -> Verdict {
        let flags = unsafe X509_get_extension_flags(leaf)
        if flags & UInt32(EXFLAG_CA) != 0, !isNamed {
            return refused("it is an authority's own certificate, which must not stand for a host")
        }
        if flags & UInt32(EXFLAG_XKUSAGE) != 0 {
            let wanted = UInt32(purpose == .server ? XKU_SSL_SERVER : XKU_SSL_CLIENT)
            // "Any" is not enough: such a certificate was not made for this use (RFC 9525 and the CAs' own
            // rules).
            if unsafe X509_get_extended_key_usage(leaf) & wanted == 0 {
                return .refused(
                    .wrongPurpose(
                        reason: "its extended key usage does not name TLS"
                            + " \(purpose == .server ? "servers" : "clients")"))
            }
        }
        if flags & UInt32(EXFLAG_CA) == 0, unsafe ChainRule.isCritical(leaf, NID_name_constraints) != nil {
            return refused("it has name constraints, which only an authority's may have")
        }
        if unsafe ChainRule.isCritical(leaf, NID_subject_alt_name) == true,
            unsafe X509_NAME_entry_count(X509_get_subject_name(leaf)) > 0
        {
            return refused("its alternative names are marked as critical though it has a subject")
        }
        if let matchedName, isTooWide(matchedName, suffixes), unsafe !isNamedInFull(host, by: leaf) {
            return .wrongName
        }
        return .good
    }

    private static func refused(_ reason: String) -> Verdict {
        .refused(.badCertificate(reason: reason, code: Int(X509_V_ERR_INVALID_PURPOSE)))
    }

    /// Whether a wildcard would stand for everything below a public suffix (RFC 9525 §6.3 leaves the limit to the
    /// verifier).
    static func isTooWide(_ name: String, _ suffixes: PublicSuffixRule = .singleLabel) -> Bool {
        guard name.utf8.first == UInt8(ascii: "*") else { return false }
        var domain = name.utf8.dropFirst().drop { $0 == UInt8(ascii: ".") }
        if domain.last == UInt8(ascii: ".") { domain = domain.dropLast() }
        return suffixes.isPublicSuffix(String(Substring(domain)).lowercased())
    }

    /// Whether a certificate also names the host without a wildcard.
    private static func isNamedInFull(_ host: String, by leaf: OpaquePointer) -> Bool {
        let flags = UInt32(X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_WILDCARDS)
        return unsafe X509_check_host(leaf, host, host.utf8.count, flags, nil) == 1
    }
}

/// What connections of a context ask of the peer's chain besides what OpenSSL was set up for.
struct VerificationRules: Sendable {
    /// Whether the chain is not looked at.
    var acceptsAny = false
    /// Whether there are roots besides the machine's.
    var hasGivenRoots = false
    var pins: PinSet?
    var evaluator: TrustEvaluator?
    var suffixes = PublicSuffixRule.singleLabel
    var revocation = RevocationPolicy.none
}
