import HTTPTypes
import Martlet
import SystemPackage

/// What the options of a group say about who is calling, with what had to be read or asked for.
struct CallerPlan: Sendable {
    private var identity: CallerIdentity?
    private var netrc: NetrcFile?
    private var netrcPrecedesURL = false
    private var scheme = Credentials.PasswordScheme.basic
    private var isForAll = false

    /// Reads the netrc, and asks for a password that is missing.
    static func load(_ options: TransferOptions) async throws(UsageError) -> CallerPlan {
        var plan = CallerPlan()
        plan.isForAll = options.followsRedirects && options.trustsOtherOrigins
        if options.offersDigest { plan.scheme = options.offersBasic ? .any : .digest }
        if let token = options.bearer {
            plan.identity = CallerIdentity(.bearer(token))
        } else if let text = options.user {
            let name = text.prefix { $0 != ":" }
            let password: String
            if name.endIndex < text.endIndex {
                password = String(text[text.index(after: name.endIndex)...])
            } else {
                password = await PasswordPrompt.password(of: text) ?? ""
            }
            plan.identity = CallerIdentity(
                .password(user: String(name), password: password, scheme: plan.scheme))
        } else if options.netrc != .none {
            plan.netrc = try await file(options.netrcFile, isOptional: options.netrc == .optional)
            plan.netrcPrecedesURL = options.netrc == .required
        }
        return plan
    }

    /// A file that was named must be there, unless it is optional; the one of the user's folder need not.
    private static func file(_ named: String?, isOptional: Bool) async throws(UsageError) -> NetrcFile? {
        let path: FilePath
        if let named {
            path = FilePath(named)
        } else {
            guard let home = Environment["HOME"], !home.isEmpty else { return nil }
            path = FilePath(home).appending(".netrc")
        }
        do {
            return try await NetrcFile.load(path)
        } catch let error as StorageError where (named == nil || isOptional) && error.isMissingFile {
            return nil
        } catch {
            throw UsageError("could not use “\(path.string)”: \(error)", status: .readFailed)
        }
    }

    /// Whether there is one identity, for whatever is called; and not a netrc, where hosts have theirs.
    var isOneForAll: Bool { identity != nil }

    /// What calls of any origin are to say: nothing but to the one that the identity is for, or what a netrc has for them.
    func settings(for origin: HTTPURL.Origin?) -> AuthenticationSettings {
        if let identity { return origin.map(identity.settings) ?? AuthenticationSettings() }
        return AuthenticationSettings(netrc: netrc, netrcScheme: scheme)
    }

    /// Tells a call who is calling.
    /// - Parameter fields: Given what redirects are to take along wherever they lead.
    func apply(to options: inout RequestOptions, _ fields: inout HTTPFields, url: HTTPURL) {
        if let identity {
            options.authentication = isForAll ? identity.settingsForAll(&fields) : identity.settings
        } else if let netrc {
            var settings = AuthenticationSettings(netrc: netrc, netrcScheme: scheme)
            if let user = url.user {
                // Whoever the URL names is who calls; a netrc that comes first has another password for them at most.
                let host = url.host.hasPrefix("[") ? String(url.host.dropFirst().dropLast()) : url.host
                let kept = netrc.entry(forHost: host, login: user)?.password
                let password = netrcPrecedesURL ? kept ?? url.password : url.password ?? kept
                settings.credentials = Credentials(user: user, password: password ?? "", scheme: scheme)
            }
            options.authentication = settings
        } else if url.user != nil {
            let identity = CallerIdentity(
                .password(user: url.user ?? "", password: url.password ?? "", scheme: scheme))
            options.authentication = isForAll ? identity.settingsForAll(&fields) : identity.settings
        }
        options.authentication?.probesForDigest = true
    }
}
