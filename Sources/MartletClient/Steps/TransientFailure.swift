import MartletTransport

extension HTTPError {
    /// Whether the network, a proxy or a busy server failed, and not what was said over it: the same request may fare better.
    ///
    /// Where ``wasSent`` is `false` besides, nothing of the request reached the server, and even one that is not idempotent
    /// may be sent again. Certificates that are refused, protocol errors, limits and the total clock do not pass.
    package var isTransient: Bool {
        switch code {
        case .resolutionFailed, .connectFailed, .connectionLost, .emptyResponse, .truncated: true
        case .proxyFailed: (underlying as? ProxyError)?.isTransient ?? false
        case .tlsFailed: isCutHandshake || isBrokenTLS
        case .timedOut: clock != .total
        default: false
        }
    }

    /// Whether the connection stood by then.
    var isBehindHandshake: Bool { phase == .sending || phase == .awaitingHead || phase == .receivingBody }

    /// Whether the peer, which may be a proxy, ended the connection amid the TLS handshake, without a word: as a reset there,
    /// that says nothing of who it is. A server that is restarted does so, and one that has too much to do.
    package var isCutHandshake: Bool {
        code == .tlsFailed && phase == .securing && (underlying as? TLSError)?.kind == .truncated
    }

    /// Whether TLS broke behind the handshake, by an alert or a record that was changed. That a certificate of this side is
    /// refused is told there too, by TLS 1.3, and will not pass.
    private var isBrokenTLS: Bool {
        guard isBehindHandshake else { return false }
        switch (underlying as? TLSError)?.kind {
        case .clientCertificateRequired?, .clientCertificateRefused?: return false
        default: return true
        }
    }
}

extension ProxyError {
    /// Whether the proxy broke off, has no server or no capacity at the moment, or could not reach the server.
    ///
    /// RFC 9110 §15.6.3–15.6.5 for HTTP; for SOCKS the codes that a direct connection would fail with (RFC 1928 §6): general
    /// failure, network or host unreachable, connection refused, TTL expired.
    var isTransient: Bool {
        switch kind {
        case .connectionLost: true
        case .refused(let status): (502...504).contains(status)
        case .socksRefused(let code): [1, 3, 4, 5, 6].contains(code)
        case .socksCredentialsRefused, .protocolViolation, .unsendable: false
        }
    }
}
