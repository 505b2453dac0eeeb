import FoundationEssentials
import Glibc
import Martlet

enum SessionPlan {
    /// Returns the configuration, with the jar if the options use cookies. Warns if the key log file is not writable.
    static func configuration(for options: TransferOptions, usesTLS: Bool, jar: CookieJar) async throws(UsageError)
        -> SessionConfiguration
    {
        let global = options.global
        if usesTLS, !global.isSilent { await KeyLogPlan.warn(asJSON: global.shownProgress == .json) }
        var configuration = try configuration(for: options, usesTLS: usesTLS)
        if CookiePlan.isActive(options) {
            await CookiePlan.fill(jar, for: options)
            configuration.cookies = jar
        }
        return configuration
    }

    /// Returns the configuration without cookies. If `usesTLS`, checks that the files of the TLS options are readable.
    static func configuration(for options: TransferOptions, usesTLS: Bool) throws(UsageError) -> SessionConfiguration {
        var configuration = options.session
        configuration.redirects = .doNotFollow
        if options.redirects.followsRedirects, let method = options.method.flatMap({ HTTPRequest.Method($0) }) {
            configuration.middleware = [MethodPreservingInterceptor(method: method)]
        }
        if let wait = options.continueTimeout { configuration.continueTimeout = wait }
        // CONNECT requests to a proxy have the same value.
        if let agent = options.userAgent { configuration.userAgent = agent.isEmpty ? nil : agent }
        configuration.proxy = try ProxyPlan.settings(options.proxy)
        configuration.tls = usesTLS ? try tls(options) : TLSSettings()
        return configuration
    }

    private static func tls(_ options: TransferOptions) throws(UsageError) -> TLSSettings {
        var tls = options.session.tls
        tls.keyLogFile = KeyLogPlan.file
        let hasRoots = options.authorityFile != nil || options.authorityDirectory != nil
        if options.acceptsAnyCertificate {
            tls.verifiesHostName = false
            tls.trust = .dangerouslyAcceptingAnyCertificate
            if WriteOut.printsVerification(options.writeOut) {
                // `-w` prints the result of the verification: the chain is verified, but always accepted.
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
        if let file = options.authorityFile { policy.roots.append(try readable(file, .authorityFile, "--cacert")) }
        if let directory = options.authorityDirectory {
            guard let names = try? FileManager.default.contentsOfDirectory(atPath: directory) else {
                throw UsageError("option --capath: cannot read “\(directory)”", status: .authorityFile)
            }
            // As in OpenSSL, only files named after the hash of a subject are used, such as `9d66eef0.0`.
            let hashed = names.filter { name in
                let parts = name.split(separator: ".")
                return parts.count == 2 && parts[0].count == 8 && parts[0].allSatisfy(\.isHexDigit)
                    && parts[1].allSatisfy(\.isNumber)
            }
            try check(
                !hashed.isEmpty, "option --capath: no hashed certificates in “\(directory)”", status: .authorityFile)
            policy.roots += hashed.sorted().map { .file("\(directory)/\($0)") }
        }
        return policy
    }

    /// Parses `FILE` or `FILE:PASSWORD`; a colon in the name is written `\:`.
    private static func identity(_ text: String, _ options: TransferOptions) throws(UsageError) -> TLSIdentity {
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

    private static func readable(_ file: String, _ status: ExitStatus, _ option: String) throws(UsageError) -> PEMSource
    {
        try check(unsafe access(file, R_OK) == 0, "option \(option): cannot read “\(file)”", status: status)
        return .file(file)
    }
}

/// The proxy settings from the options, with curl's rules.
enum ProxyPlan {
    /// The proxy options of a command line or of a batch request.
    struct Options: Hashable, Sendable {
        /// The proxy's URL; empty for none, `nil` for that of the environment.
        var address: String?
        var user: String?
        var scheme = Credentials.PasswordScheme.basic
        /// The servers that are reached without a proxy; `nil` for the list in `no_proxy`.
        var exceptions: String?
        var alwaysTunnels = false
        var authorityFile: String?
        var acceptsAnyCertificate = false

        var isEmpty: Bool { self == Options() }
    }

    /// Creates the settings. Error messages contain no password.
    static func settings(_ options: Options) throws(UsageError) -> ProxySettings {
        var settings = ProxySettings.environment
        if let address = options.address {
            guard !address.isEmpty else { return .none }
            do throws(HTTPURL.ParseError) { settings = .server(try ProxyServer(address)) } catch {
                throw UsageError("the proxy's URL is invalid: \(error)", status: .unresolvedProxy)
            }
            // As in curl, `no_proxy` of the environment also applies to a proxy that an option names.
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
                throw UsageError("the credentials of the proxy have no password; write USER:PASSWORD")
            }
            settings = settings.withCredentials(
                ProxyCredentials(user: String(user[..<colon]), password: user.rest(after: colon)))
        }
        switch options.scheme {
        case .basic: break
        case .digest: settings = settings.changingCredentials { $0.requiresDigest = true }
        case .any: settings = settings.changingCredentials { $0.sendsPreemptively = false }
        }
        return options.alwaysTunnels ? settings.alwaysTunneling() : settings
    }

    /// The URL of a SOCKS proxy. The scheme is added if `address` has none.
    static func socks(_ address: String, _ scheme: String) -> String {
        address.utf8.firstRange(of: "://".utf8) == nil ? "\(scheme)://\(address)" : address
    }
}

/// The caches of a command line: one for each directory, shared by all groups that use it.
struct CachePlan: Sendable {
    /// The maximum time that the program waits for background validations before it ends.
    private static let validationLimit = Duration.seconds(10)

    private var caches: [FilePath: ResponseCache] = [:]

    /// Checks the cache options of all groups, then opens the caches. Error messages name the option.
    init(_ groups: [TransferOptions]) async throws(UsageError) {
        var staleTimes: [FilePath: Int?] = [:]
        for group in groups {
            guard let directory = try CachePlan.directory(of: group) else { continue }
            let earlier = staleTimes[directory] ?? nil
            let staleTime = group.staleIfError ?? earlier
            if let earlier, staleTime != earlier {
                throw UsageError("option --stale-if-error: the cache “\(directory)” already has the value \(earlier)")
            }
            staleTimes[directory] = .some(staleTime)
        }
        for (directory, staleTime) in staleTimes {
            let (cache, exists) = try await CachePlan.open(directory, staleIfError: staleTime)
            caches[directory] = cache
            if !exists, groups.global.printsErrors {
                await Console.report("option --cache: “\(directory)” cannot be created; nothing is stored")
            }
        }
    }

    /// Returns the cache directory of a group, after a check of the options that need one.
    private static func directory(of options: TransferOptions) throws(UsageError) -> FilePath? {
        guard let name = options.cacheDirectory else {
            try check(!options.isOffline, "option --offline: needs --cache DIR")
            try check(options.staleIfError == nil, "option --stale-if-error: needs --cache DIR")
            return nil
        }
        try check(
            !options.isOffline || !options.isRaw,
            "option --offline: cannot be used with --raw, which bypasses the cache")
        return FilePath(name).lexicallyNormalized()
    }

    /// Opens a cache, and returns whether its directory exists; without one nothing is stored.
    /// - Throws: An error if the directory belongs to another user, is accessible by others, or is not a directory.
    static func open(_ directory: FilePath, staleIfError: Int? = nil) async throws(UsageError) -> (
        cache: ResponseCache, exists: Bool
    ) {
        var options = ResponseCache.Options()
        // Larger values count as 2^31 seconds (RFC 9111 §1.2.2).
        options.staleIfError = staleIfError.map { .seconds(min($0, 1 << 31)) }
        let opening = options
        return try await Console.attempt { () throws(UsageError) in
            do throws(CacheDirectoryError) {
                let cache = try ResponseCache.at(directory, options: opening)
                let type = FileInput.status(of: directory.string)?.type
                if type == nil || type == S_IFDIR { return (cache, type != nil) }
            } catch { throw UsageError("option --cache: \(error)") }
            throw UsageError("option --cache: “\(directory)” is not a directory")
        }
    }

    func apply(_ options: TransferOptions, to configuration: inout SessionConfiguration) {
        guard let name = options.cacheDirectory else { return }
        configuration.cache = caches[FilePath(name).lexicallyNormalized()]
        if options.isOffline {
            configuration.cacheMode = .onlyIfCached
        } else if options.acceptsAnyCertificate {
            // Responses of unverified servers must not be served to requests that verify the server.
            configuration.cacheMode = .noStore
        }
    }

    /// Completes the background validations and the writes of all caches before the program ends.
    func end(_ session: HTTPSession?) async { for cache in caches.values { await CachePlan.end(session, cache) } }

    /// Waits for background validations, for a limited time, and until all stored responses are on disk.
    static func end(_ session: HTTPSession?, _ cache: ResponseCache) async {
        if let session, cache.statistics.revalidations > 0 {
            // Unstructured: only invalidating the session ends the wait below early.
            let timer = Task {
                try await Task.sleep(for: validationLimit)
                await session.invalidateAndCancel()
            }
            await session.finishAndInvalidate()
            timer.cancel()
        }
        await cache.flush()
    }
}
