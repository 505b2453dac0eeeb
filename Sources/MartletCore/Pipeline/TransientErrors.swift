extension HTTPError {
    /// Whether the network, a proxy or a busy server failed, so that the same request may succeed later.
    ///
    /// If ``wasSent`` is `false` as well, nothing of the request reached the server, and even a request that is not
    /// idempotent may be sent again. Rejected certificates, protocol errors, limits and the total timeout are not
    /// transient.
    package var isTransient: Bool {
        switch code {
        case .resolutionFailed, .connectFailed, .connectionLost, .emptyResponse, .truncated: true
        case .proxyFailed: (underlying as? ProxyError)?.isTransient ?? false
        case .tlsFailed: isCutHandshake || isBrokenTLS
        case .timedOut: timeout != .total && timeout != .unread
        // The token could not be fetched.
        case .authenticationFailed: (underlying as? HTTPError)?.isTransient ?? false
        default: false
        }
    }

    /// Whether the connection was established when the error occurred.
    var isAfterHandshake: Bool { phase == .sending || phase == .awaitingHead || phase == .receivingBody }

    /// Whether the peer, which may be a proxy, ended the connection during the TLS handshake without an alert. Like a
    /// reset in the handshake, this has no relation to its identity: a server that restarts or is overloaded does so.
    package var isCutHandshake: Bool {
        code == .tlsFailed && phase == .tlsHandshake && (underlying as? TLSError)?.kind == .truncated
    }

    /// Whether TLS failed after the handshake, by an alert or a modified record. In TLS 1.3 a rejected client
    /// certificate is also reported there; that is not transient.
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
