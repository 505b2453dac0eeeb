import Martlet

/// The proxy that options ask for, as curl reads them.
enum ProxyPlan {
    /// What options, or a line of a batch, say about proxies.
    struct Wish: Hashable, Sendable {
        /// The proxy's address; empty for none, `nil` for the environment's.
        var address: String?
        /// `user:password`.
        var user: String?
        /// How an HTTP proxy is told who asks.
        var scheme = Credentials.PasswordScheme.basic
        /// The servers reached without; `nil` for those of `no_proxy`.
        var exceptions: String?
        /// Whether plain requests go through a tunnel as well.
        var tunnelsEverything = false
        /// Authorities for an HTTPS proxy, in a file.
        var authorityFile: String?
        /// Whether an HTTPS proxy may be anybody.
        var acceptsAnyCertificate = false

        /// Whether nothing is said.
        var isEmpty: Bool { self == Wish() }
    }

    /// The settings.
    /// - Throws: What is wrong, in words without a password.
    static func settings(_ wish: Wish) throws(UsageError) -> ProxySettings {
        var settings = ProxySettings.environment
        if let address = wish.address {
            guard !address.isEmpty else { return .none }
            do throws(HTTPURL.ParseError) {
                settings = .server(try ProxyServer(address))
            } catch {
                throw UsageError("the proxy's address cannot be used: \(error)", status: .unresolvedProxy)
            }
            // As in curl: the exceptions of the environment are those of a proxy that is named, too.
            let exceptions = wish.exceptions ?? Environment["no_proxy"] ?? Environment["NO_PROXY"] ?? ""
            settings = settings.bypassing(exceptions)
        } else if let exceptions = wish.exceptions {
            settings = settings.bypassingOnly(ProxyBypass(exceptions))
        }
        if let tls = tls(wish) { settings = settings.withTLS(tls) }
        if let user = wish.user { settings = settings.withCredentials(try credentials(user)) }
        switch wish.scheme {
        case .basic: break
        case .digest: settings = settings.changingCredentials { $0.isForDigestAlone = true }
        case .any: settings = settings.changingCredentials { $0.isShownUnasked = false }
        }
        return wish.tunnelsEverything ? settings.tunnellingEverything() : settings
    }

    private static func credentials(_ text: String) throws(UsageError) -> ProxyCredentials {
        guard let colon = text.first(":") else {
            throw UsageError("the proxy's user has no password: write USER:PASSWORD")
        }
        return ProxyCredentials(
            user: String(text[..<colon]), password: text.rest(behind: colon))
    }

    /// What TLS with an HTTPS proxy demands; `nil` for what it does by default.
    private static func tls(_ wish: Wish) -> TLSSettings? {
        guard wish.acceptsAnyCertificate || wish.authorityFile != nil else { return nil }
        var tls = TLSSettings()
        if wish.acceptsAnyCertificate {
            tls.trust = .dangerouslyAcceptingAnyCertificate
            tls.verifiesHostName = false
        } else if let file = wish.authorityFile {
            tls.trust = .only(.file(file))
        }
        return tls
    }

    /// The address of a SOCKS proxy that is written without a scheme.
    static func socks(_ address: String, _ scheme: String) -> String {
        address.holds("://") ? address : "\(scheme)://\(address)"
    }
}
