import FoundationEssentials

extension HTTPError {
    /// Whether the same request may succeed later: the network, a proxy or a busy server failed.
    ///
    /// If ``wasSent`` is `false`, even a request that is not idempotent may be sent again. Rejected certificates,
    /// protocol errors, limits, and the total and unread timeouts are not transient.
    package var isTransient: Bool {
        switch code {
        case .resolutionFailed, .connectFailed, .connectionLost, .emptyResponse, .truncated: true
        case .proxyFailed: (underlying as? ProxyError)?.isTransient ?? false
        case .tlsFailed: isCutHandshake || isBrokenTLS
        case .timedOut: timeout != .total && timeout != .unread
        // The cause is the error of a token provider or a handler.
        case .authenticationFailed: (underlying as? HTTPError)?.isTransient ?? false
        default: false
        }
    }

    /// The delay in the response's `Retry-After`; `nil` without a valid one.
    package var retryAfter: Duration? { exchange?.rawHead.retryAfter?.delay }

    /// Whether the connection was established when the error occurred.
    var isAfterHandshake: Bool { phase == .sending || phase == .awaitingHead || phase == .receivingBody }

    /// Whether the peer, which may be a proxy, ended the connection during the TLS handshake without an alert, as a
    /// server does that restarts or is overloaded.
    package var isCutHandshake: Bool {
        code == .tlsFailed && phase == .tlsHandshake && (underlying as? TLSError)?.kind == .truncated
    }

    /// Whether TLS failed after the handshake, by an alert or a modified record. In TLS 1.3 the rejection of a client
    /// certificate is also received after the handshake, but is not transient.
    private var isBrokenTLS: Bool {
        guard isAfterHandshake else { return false }
        switch (underlying as? TLSError)?.kind {
        case .clientCertificateRequired?, .clientCertificateRejected?: return false
        default: return true
        }
    }
}

extension RetryRule.Outcome {
    /// Returns the outcome of a request that failed.
    static func failure(_ error: HTTPError) -> Self {
        let isFinal =
            switch error.code {
            case .timedOut, .invalidURL, .invalidRequest, .invalidHeader, .sessionInvalidated, .bodyNotReplayable,
                .cancelledByDelegate:
                true
            default: false
            }
        return .failure(isTransient: error.isTransient, isFinal: isFinal, wasSent: error.wasSent)
    }
}

extension ResponseHead {
    /// The first `Retry-After` field, relative to the current time; `nil` without a valid one.
    package var retryAfter: RetryAfter? {
        fields.rawValues(of: "retry-after").first.flatMap { RetryAfter($0, now: Int64(Date().timeIntervalSince1970)) }
    }
}
