import FoundationEssentials
import Glibc
import HTTPTypes
import Martlet
import MartletTransport
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

/// Who calls: what a server that asks is answered, or told unasked.
struct CallerIdentity: Sendable {
    /// What proves it.
    enum Proof: Sendable {
        case password(user: String, password: String, scheme: Credentials.PasswordScheme)
        case bearer(String)
    }

    private let proof: Proof

    init(_ proof: Proof) { self.proof = proof }

    private var credentials: Credentials {
        switch proof {
        case .password(let user, let password, let scheme):
            Credentials(user: user, password: password, scheme: scheme)
        case .bearer(let token): .bearer(token)
        }
    }

    /// Settings for the origin that a call begins at, and for no other.
    var settings: AuthenticationSettings { AuthenticationSettings(credentials: credentials) }

    /// Settings for an origin, wherever a call begins.
    func settings(for origin: HTTPURL.Origin) -> AuthenticationSettings {
        AuthenticationSettings(credentialsByOrigin: [origin: credentials])
    }

    /// Settings for every origin that a call comes to, as `--location-trusted` wants it: what needs no challenge goes
    /// along as a field, which such redirects keep, and the rest answers whoever asks.
    ///
    /// - Parameter fields: Given the field, unless there is one.
    func settingsForAll(_ fields: inout HTTPFields) -> AuthenticationSettings {
        let credentials = credentials
        switch proof {
        case .password(let user, let password, .basic):
            let text = Data("\(user):\(password)".utf8).base64EncodedString()
            if fields[.authorization] == nil { fields[.authorization] = "Basic \(text)" }
        case .bearer(let token):
            if fields[.authorization] == nil { fields[.authorization] = "Bearer \(token)" }
        case .password: return AuthenticationSettings(attemptLimit: 1) { _ in credentials }
        }
        return AuthenticationSettings()
    }
}

/// Asks for a password on the terminal.
enum PasswordPrompt {
    /// The password; `nil` without a terminal to ask on.
    static func password(of user: String) async -> String? {
        await Console.run { () -> String? in
            guard
                let terminal = try? FileDescriptor.open(
                    FilePath("/dev/tty"), .readWrite, options: [.closeOnExec])
            else { return nil }
            defer { try? terminal.close() }
            return try? ask("Enter host password for user '\(user)':", on: terminal)
        }
    }

    private static func ask(_ question: String, on terminal: FileDescriptor) throws -> String {
        var shown = termios()
        guard unsafe tcgetattr(terminal.rawValue, &shown) == 0 else { throw Errno(rawValue: ENOTTY) }
        var hidden = shown
        hidden.c_lflag &= ~tcflag_t(ECHO)
        // Who gives up while being asked shall see what they type again.
        Interrupts.terminalState = (terminal.rawValue, shown)
        defer {
            Interrupts.terminalState = nil
            _ = unsafe tcsetattr(terminal.rawValue, TCSANOW, &shown)
        }
        guard unsafe tcsetattr(terminal.rawValue, TCSANOW, &hidden) == 0 else {
            throw Errno(rawValue: ENOTTY)
        }
        try terminal.writeAll(question.utf8)
        var line: [UInt8] = []
        while line.count < 4096, let byte = try DescriptorReading.read(terminal, atMost: 1).first, byte != 10
        {
            line.append(byte)
        }
        try terminal.writeAll("\n".utf8)
        return String(decoding: line, as: UTF8.self)
    }
}

/// The file that `SSLKEYLOGFILE` names for the secrets of connections. As in curl, one that cannot be written to fails no
/// request.
enum KeyLogPlan {
    private static var name: String? { Environment["SSLKEYLOGFILE"].flatMap { $0.isEmpty ? nil : $0 } }

    /// The file; `nil` for none, and for one that cannot be appended to.
    static var file: String? { name.flatMap { KeyLogFile.fault(at: $0) == nil ? $0 : nil } }

    /// Tells of a file that cannot be appended to.
    /// - Parameter asJSON: Whether programs read what is told.
    static func warn(asJSON: Bool = false) async {
        guard let name, let fault = KeyLogFile.fault(at: name) else { return }
        let message = "SSLKEYLOGFILE: nothing is kept in “\(name)”: \(fault)"
        let line = asJSON ? DownloadJSON.warning(message) : "martlet: warning: \(message)"
        await Console.complain("\(line)\n")
    }
}
