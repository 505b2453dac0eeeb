import FoundationEssentials
import Glibc
import Martlet

/// The configuration of a session from the options of a group.
enum SessionPlan {
    /// The configuration, with the jar of the command line if the options use cookies. Reports a key log file that cannot be
    /// written.
    static func configuration(
        for options: TransferOptions, usesTLS: Bool, jar: CookieJar
    ) async throws(UsageError) -> SessionConfiguration {
        let global = options.global
        if usesTLS, !global.isSilent { await KeyLogPlan.warn(asJSON: global.shownProgress == .json) }
        var configuration = try configuration(for: options, usesTLS: usesTLS)
        if CookiePlan.isActive(options) {
            await CookiePlan.fill(jar, for: options)
            configuration.cookies = jar
        }
        return configuration
    }

    /// The configuration. Checks the files of TLS, if any URL needs it.
    static func configuration(
        for options: TransferOptions, usesTLS: Bool
    ) throws(UsageError) -> SessionConfiguration {
        var configuration = options.session
        configuration.redirects = .doNotFollow
        if options.redirects.followsRedirects, let method = options.method.flatMap({ HTTPRequest.Method($0) })
        {
            configuration.middleware = [MethodPreservingInterceptor(method: method)]
        }
        if let wait = options.continueTimeout { configuration.continueTimeout = wait }
        // The proxy gets the same, in its CONNECT.
        if let agent = options.userAgent { configuration.userAgent = agent.isEmpty ? nil : agent }
        configuration.proxy = try ProxyPlan.settings(options.proxy)
        configuration.tls = usesTLS ? try tls(options) : TLSSettings()
        return configuration
    }

    private static func tls(_ options: TransferOptions) throws(UsageError) -> TLSSettings {
        var tls = options.session.tls
        tls.keyLogFile = KeyLogPlan.file
        let hasRoots = options.authorityFile != nil || options.authorityFolder != nil
        if options.acceptsAnyCertificate {
            tls.verifiesHostName = false
            tls.trust = .dangerouslyAcceptingAnyCertificate
            if WriteOut.tellsVerification(options.writeOut) {
                // The result is printed: the chain is verified, and accepted in any case.
                tls.trust = (hasRoots ? try trust(options) : TrustPolicy.system).evaluated { _, _ in .accept }
            }
        } else if hasRoots {
            tls.trust = try trust(options)
        }
        if let text = options.pinnedKeys {
            tls.trust = tls.trust.dangerouslyPinningWithoutBackup(try OptionValues.pins(text))
        }
        if let file = options.revocationLists {
            tls.revocation = .lists(try readable(file, .revocationList, "--crlfile"))
        }
        if let certificate = options.certificate { tls.identity = try identity(certificate, options) }
        return tls
    }

    private static func trust(_ options: TransferOptions) throws(UsageError) -> TrustPolicy {
        var policy = TrustPolicy.only()
        if let file = options.authorityFile {
            policy.roots.append(try readable(file, .authorityFile, "--cacert"))
        }
        if let folder = options.authorityFolder {
            guard let names = try? FileManager.default.contentsOfDirectory(atPath: folder) else {
                throw UsageError("option --capath: “\(folder)” cannot be read", status: .authorityFile)
            }
            // As in OpenSSL: the files named after the hashes of their subjects.
            let hashed = names.filter { name in
                let parts = name.split(separator: ".")
                return parts.count == 2 && parts[0].count == 8 && parts[0].allSatisfy(\.isHexDigit)
                    && parts[1].allSatisfy(\.isNumber)
            }
            try check(
                !hashed.isEmpty, "option --capath: no hashed certificates in “\(folder)”",
                status: .authorityFile)
            policy.roots += hashed.sorted().map { .file("\(folder)/\($0)") }
        }
        return policy
    }

    /// `FILE` or `FILE:PASSWORD`; a colon in the name is written `\:`.
    private static func identity(_ text: String, _ options: TransferOptions) throws(UsageError) -> TLSIdentity
    {
        var (name, passphrase, rest) = ("", options.passphrase, text[...])
        while let character = rest.popFirst() {
            if character == ":" {
                passphrase = passphrase ?? String(rest)
                break
            }
            if let literal = character == "\\" ? rest.popFirst() : character { name.append(literal) }
        }
        let chain = try readable(name, .clientCertificate, "--cert")
        if options.isPKCS12 { return TLSIdentity(pkcs12: chain, passphrase: passphrase) }
        var key: PEMSource?
        if let file = options.privateKey { key = try readable(file, .clientCertificate, "--key") }
        return TLSIdentity(certificateChain: chain, privateKey: key, passphrase: passphrase)
    }

    private static func readable(
        _ file: String, _ status: ExitStatus, _ option: String
    ) throws(UsageError) -> PEMSource {
        try check(
            unsafe access(file, R_OK) == 0, "option \(option): “\(file)” cannot be read", status: status)
        return .file(file)
    }
}

/// The settings of proxies from options, as curl reads them.
enum ProxyPlan {
    /// The options, or those of a line of a batch, about proxies.
    struct Options: Hashable, Sendable {
        /// The proxy's URL; empty for none, `nil` for that of the environment.
        var address: String?
        /// `user:password`.
        var user: String?
        /// The scheme of authentication to an HTTP proxy.
        var scheme = Credentials.PasswordScheme.basic
        /// The servers reached without a proxy; `nil` for those of `no_proxy`.
        var exceptions: String?
        /// Whether plain requests go through a tunnel as well.
        var alwaysTunnels = false
        /// A file of authorities for an HTTPS proxy.
        var authorityFile: String?
        /// Whether any certificate of an HTTPS proxy is accepted.
        var acceptsAnyCertificate = false

        var isEmpty: Bool { self == Options() }
    }

    /// - Throws: The error, in words without a password.
    static func settings(_ options: Options) throws(UsageError) -> ProxySettings {
        var settings = ProxySettings.environment
        if let address = options.address {
            guard !address.isEmpty else { return .none }
            do throws(HTTPURL.ParseError) { settings = .server(try ProxyServer(address)) } catch {
                throw UsageError("the proxy's address cannot be used: \(error)", status: .unresolvedProxy)
            }
            // As in curl, the exceptions of the environment are also for the proxies of options.
            let exceptions = options.exceptions ?? Environment["no_proxy"] ?? Environment["NO_PROXY"] ?? ""
            settings = settings.bypassing(exceptions)
        } else if let exceptions = options.exceptions {
            settings = settings.bypassingOnly(ProxyBypass(exceptions))
        }
        var tls = TLSSettings()
        if options.acceptsAnyCertificate {
            tls.trust = .dangerouslyAcceptingAnyCertificate
            tls.verifiesHostName = false
            settings = settings.withTLS(tls)
        } else if let file = options.authorityFile {
            tls.trust = .only(.file(file))
            settings = settings.withTLS(tls)
        }
        if let user = options.user {
            guard let colon = user.first(":") else {
                throw UsageError("the proxy's user has no password: write USER:PASSWORD")
            }
            settings = settings.withCredentials(
                ProxyCredentials(user: String(user[..<colon]), password: user.rest(behind: colon)))
        }
        switch options.scheme {
        case .basic: break
        case .digest: settings = settings.changingCredentials { $0.requiresDigest = true }
        case .any: settings = settings.changingCredentials { $0.sendsPreemptively = false }
        }
        return options.alwaysTunnels ? settings.alwaysTunneling() : settings
    }

    /// The URL of a SOCKS proxy, which may be written without a scheme.
    static func socks(_ address: String, _ scheme: String) -> String {
        address.utf8.firstRange(of: "://".utf8) == nil ? "\(scheme)://\(address)" : address
    }
}
