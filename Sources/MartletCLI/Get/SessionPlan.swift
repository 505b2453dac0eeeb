import FoundationEssentials
import Glibc
import HTTPTypes
import Martlet

/// Settings of a session from the options of a group.
enum SessionPlan {
    /// The settings with the cookies of a command line, whose jar they get where the options ask for cookies; tells of a file of
    /// secrets that cannot be written.
    static func configuration(
        for options: TransferOptions, _ global: GlobalOptions, usesTLS: Bool, jar: CookieJar,
        asJSON: Bool = false
    ) async throws(UsageError) -> SessionConfiguration {
        if usesTLS, !global.isSilent { await KeyLogPlan.warn(asJSON: asJSON) }
        var configuration = try configuration(for: options, usesTLS: usesTLS)
        if CookiePlan.isActive(options) {
            await CookiePlan.fill(jar, for: options, global)
            configuration.cookies = jar
        }
        return configuration
    }

    /// The settings. Looks for the files that TLS needs, if any URL is to be fetched by it.
    static func configuration(
        for options: TransferOptions, usesTLS: Bool
    ) throws(UsageError) -> SessionConfiguration {
        var configuration = SessionConfiguration.default
        configuration.resolveOverrides = options.overrides
        configuration.redirects = .refuse
        if options.followsRedirects, let method = options.method.flatMap({ HTTPRequest.Method($0) }) {
            configuration.middleware = [MethodKeeper(method: method)]
        }
        configuration.connectRedirections = options.redirections
        configuration.unixSocketPath = options.unixSocketPath
        configuration.connectRace.families = options.families
        if let delay = options.attemptDelay { configuration.connectRace.attemptDelay = delay }
        configuration.socketOptions.keepAliveInterval = options.keepAliveInterval
        if let wait = options.continueTimeout { configuration.continueTimeout = wait }
        // A proxy is told the same, in its CONNECT.
        if let agent = options.userAgent { configuration.userAgent = agent.isEmpty ? nil : agent }
        configuration.proxy = try ProxyPlan.settings(options.proxy)
        if let name = options.interface { setInterface(name, &configuration) }
        if usesTLS { configuration.tls = try tls(options) }
        return configuration
    }

    /// `name`, `address`, `if!name` or `host!address`.
    private static func setInterface(_ text: String, _ configuration: inout SessionConfiguration) {
        let isInterface = text.hasPrefix("if!")
        let name =
            isInterface
            ? String(text.dropFirst(3)) : text.hasPrefix("host!") ? String(text.dropFirst(5)) : text
        if !isInterface, SocketAddress(literal: name, port: 0) != nil {
            configuration.socketOptions.localAddress = name
        } else {
            configuration.socketOptions.interfaceName = name
        }
    }

    private static func tls(_ options: TransferOptions) throws(UsageError) -> TLSSettings {
        var tls = TLSSettings()
        tls.minimumVersion = options.minimumTLS
        tls.maximumVersion = options.maximumTLS
        tls.cipherList = options.cipherList
        tls.cipherSuites = options.cipherSuites
        tls.usesSessionTickets = options.usesTickets
        if !options.offersProtocols { tls.applicationProtocols = [] }
        tls.keyLogFile = KeyLogPlan.file
        if options.acceptsAnyCertificate {
            tls.trust = .dangerouslyAcceptingAnyCertificate
            tls.verifiesHostName = false
            if WriteOut.tellsVerification(options.writeOut) {
                // What would be refused is to be told: then the chain is verified, and accepted whatever comes of it.
                let hasRoots = options.authorityFile != nil || options.authorityFolder != nil
                tls.trust = (hasRoots ? try trust(options) : TrustPolicy.system).evaluated { _, _ in .accept }
            }
        } else if options.authorityFile != nil || options.authorityFolder != nil {
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
            // As OpenSSL: the files named after the hashes of their subjects.
            let hashed = names.filter { name in
                let parts = name.split(separator: ".")
                return parts.count == 2 && parts[0].count == 8 && parts[0].allSatisfy(\.isHexDigit)
                    && parts[1].allSatisfy(\.isNumber)
            }
            guard !hashed.isEmpty else {
                throw UsageError(
                    "option --capath: no hashed certificates in “\(folder)”", status: .authorityFile)
            }
            policy.roots += hashed.sorted().map { .file("\(folder)/\($0)") }
        }
        return policy
    }

    /// `FILE` or `FILE:PASSWORD`; a colon in the name is written `\:`.
    private static func identity(_ text: String, _ options: TransferOptions) throws(UsageError) -> TLSIdentity
    {
        var name = ""
        var password: String?
        var isEscaped = false
        for (index, character) in zip(text.indices, text) {
            if isEscaped {
                name.append(character)
                isEscaped = false
            } else if character == "\\" {
                isEscaped = true
            } else if character == ":" {
                password = String(text[text.index(after: index)...])
                break
            } else {
                name.append(character)
            }
        }
        let chain = try readable(name, .clientCertificate, "--cert")
        if options.isPKCS12 { return TLSIdentity(pkcs12: chain, passphrase: options.passphrase ?? password) }
        var key: PEMSource?
        if let file = options.privateKey { key = try readable(file, .clientCertificate, "--key") }
        return TLSIdentity(
            certificateChain: chain, privateKey: key, passphrase: options.passphrase ?? password)
    }

    private static func readable(
        _ file: String, _ status: ExitStatus, _ option: String
    ) throws(UsageError) -> PEMSource {
        guard unsafe access(file, R_OK) == 0 else {
            throw UsageError("option \(option): “\(file)” cannot be read", status: status)
        }
        return .file(file)
    }
}

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
        return ProxyCredentials(user: String(text[..<colon]), password: text.rest(behind: colon))
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
