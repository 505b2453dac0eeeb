public import MartletCore

/// The verification of the digests of responses (RFC 9530): `Content-Digest`, and `Repr-Digest` if the content is the
/// whole representation. Digests in trailers are verified as well.
///
/// SHA-256 and SHA-512 are verified, and each digest must match. Other functions are ignored (RFC 9530 §5), and so is a
/// field with a syntax error. The digests are those of the received bytes, before content codings are decoded. A
/// mismatch is an ``HTTPError`` with the code `.checksumMismatch`, whose ``HTTPError/underlying`` is a ``DigestError``:
/// a collected call returns no body, and a streamed body ends with the error. A response that does not match is not
/// stored in the cache. One that was stored without verification is removed if it does not match, and fetched again;
/// a streamed call fails with the code `.cachedBodyCorrupted` instead.
///
/// Digests detect damage. They do not protect against an attacker, who can change them as well.
public enum DigestVerificationPolicy: String, Hashable, Sendable, CaseIterable, Codable {
    /// Digests are not verified.
    case off
    /// Digests are verified if there are any. A chunked body is hashed with both functions, as digests may follow it.
    case whenPresent
    /// A response with the status 2xx and content is rejected if it has no digest that can be verified. Requests ask
    /// for digests with `Want-Content-Digest` and `Want-Repr-Digest`, unless they have these fields. A download to a
    /// file requires a ``DownloadOptions/checksum`` or a digest of the whole file.
    case required

    /// The verification of contents; `nil` for none.
    fileprivate var verification: ContentVerification? {
        switch self {
        case .off: nil
        case .whenPresent: DigestVerificationPolicy.verificationWhenPresent
        case .required: DigestVerificationPolicy.requiredVerification
        }
    }

    // Shared by all calls, so that calls with the same policy can share transfers.
    private static let verificationWhenPresent = ContentVerification { DigestVerifier(method: $0, isRequired: false) }
    private static let requiredVerification = ContentVerification { DigestVerifier(method: $0, isRequired: true) }
}

/// The setting of ``SessionConfiguration/digestVerification``.
enum DigestVerificationKey: StageKey {
    static var defaultValue: DigestVerificationPolicy { .off }
    static var position: StagePosition { .request }

    static func isActive(_ policy: DigestVerificationPolicy) -> Bool { policy != .off }

    static func stage(for call: Call, _ progress: CallProgress) -> (any CallStage)? {
        // A raw body contains the transfer coding, which digests do not cover.
        let policy = call[DigestVerificationKey.self]
        guard call.options.returnsRawBody != true, let verification = policy.verification else { return nil }
        return DigestStage(verification: verification, requestsDigests: policy == .required)
    }
}

extension SessionConfiguration {
    /// The verification of the digests of responses; ``DigestVerificationPolicy/off`` by default.
    public var digestVerification: DigestVerificationPolicy {
        get { self[DigestVerificationKey.self] }
        set { self[DigestVerificationKey.self] = newValue }
    }
}

extension RequestOptions {
    /// The verification of the digests of the response; `nil` (the default) for the session's policy.
    ///
    /// A raw body (``returnsRawBody``) is not verified. A download verifies its whole file instead of each response,
    /// by digests in the head of a response, also with ``DigestVerificationPolicy/off``.
    public var digestVerification: DigestVerificationPolicy? {
        get { self[DigestVerificationKey.self] }
        set { self[DigestVerificationKey.self] = newValue }
    }
}

/// A stage that lets the network and the cache verify the content of the response. They verify the bytes below the
/// decoders, so the stage needs no access to the body.
private struct DigestStage: CallStage {
    let verification: ContentVerification
    /// Whether the request has fields that request digests.
    let requestsDigests: Bool

    func answer(_ call: Call, _ next: CallNext) async throws -> StreamedResponse {
        var call = call
        if requestsDigests {
            var request = call.publicRequest
            for name in [HTTPField.Name.wantContentDigest, .wantReprDigest] where request.headerFields[name] == nil {
                request.headerFields[name] = DigestField.preferences
            }
            call = try call.adapted(request)
        }
        return try await next(call.supplemented { $0.verification = verification })
    }
}
