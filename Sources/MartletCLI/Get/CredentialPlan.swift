import FoundationEssentials
import Glibc
import Martlet

/// The credentials of a group, with those that were read from a netrc or asked for.
struct CredentialPlan: Sendable {
    private var identity: RequestCredentials?
    private var netrc: NetrcFile?
    private var netrcPrecedesURL = false
    private var scheme = Credentials.PasswordScheme.basic
    private var isForAll = false

    /// Reads the netrc, and asks for a missing password.
    static func load(_ options: TransferOptions) async throws(UsageError) -> CredentialPlan {
        var plan = CredentialPlan()
        plan.isForAll = options.redirects.followsRedirects && options.redirects.sendsCredentialsCrossOrigin
        if options.offersDigest { plan.scheme = options.offersBasic ? .any : .digest }
        if let token = options.bearer {
            plan.identity = RequestCredentials(.bearer(token))
        } else if let text = options.user {
            let name = text.prefix { $0 != ":" }
            let password =
                name.endIndex < text.endIndex
                ? String(text[text.index(after: name.endIndex)...])
                : await PasswordPrompt.password(of: text) ?? ""
            plan.identity = RequestCredentials(
                .password(user: String(name), password: password, scheme: plan.scheme))
        } else if options.netrc != .none {
            plan.netrc = try await file(options.netrcFile, isOptional: options.netrc == .optional)
            plan.netrcPrecedesURL = options.netrc == .required
        }
        return plan
    }

    /// Reads a netrc. A given file must exist, unless it is optional; that of the user need not.
    private static func file(_ named: String?, isOptional: Bool) async throws(UsageError) -> NetrcFile? {
        let home = Environment["HOME"].flatMap { $0.isEmpty ? nil : FilePath($0).appending(".netrc") }
        guard let path = named.map({ FilePath($0) }) ?? home else { return nil }
        do {
            return try await NetrcFile.load(path)
        } catch let error as StorageError where (named == nil || isOptional) && error.isMissingFile {
            return nil
        } catch {
            throw UsageError("could not use “\(path.string)”: \(error)", status: .readFailed)
        }
    }

    /// Whether there is one identity for all hosts, and not a netrc with one for each.
    var isOneForAll: Bool { identity != nil }

    /// The settings of calls to any origin: credentials for one origin only, or those that a netrc has for each.
    func settings(for origin: HTTPURL.Origin?) -> AuthenticationSettings {
        if let identity { return origin.map(identity.settings) ?? AuthenticationSettings() }
        return AuthenticationSettings(netrc: netrc, netrcScheme: scheme)
    }

    /// Gives a call its credentials.
    /// - Parameter fields: The header fields, to which those are added that all redirects keep.
    func apply(to options: inout RequestOptions, _ fields: inout HTTPFields, url: HTTPURL) {
        let ofURL = url.user.map { user in
            RequestCredentials(.password(user: user, password: url.password ?? "", scheme: scheme))
        }
        if let identity = identity ?? (netrc == nil ? ofURL : nil) {
            options.authentication = identity.settings(isForAll: isForAll, &fields)
        } else if let netrc {
            var settings = AuthenticationSettings(netrc: netrc, netrcScheme: scheme)
            if let user = url.user {
                // The user of the URL counts; a netrc that comes first can only have another password for it.
                let host = url.host.hasPrefix("[") ? String(url.host.dropFirst().dropLast()) : url.host
                let kept = netrc.entry(forHost: host, login: user)?.password
                let password = netrcPrecedesURL ? kept ?? url.password : url.password ?? kept
                settings.credentials = Credentials(user: user, password: password ?? "", scheme: scheme)
            }
            options.authentication = settings
        }
        options.authentication?.probesForDigest = true
    }
}

/// The credentials of a caller.
struct RequestCredentials: Sendable {
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

    /// The settings for one origin, wherever a call begins.
    func settings(for origin: HTTPURL.Origin) -> AuthenticationSettings {
        AuthenticationSettings(credentialsByOrigin: [origin: credentials])
    }

    /// The settings for the origin at which a call begins, and no other; or for all, as for `--location-trusted`: credentials
    /// that need no challenge are a header field, which such redirects keep, and others answer every challenge.
    /// - Parameter fields: The header fields, to which that field is added unless it is there.
    func settings(isForAll: Bool, _ fields: inout HTTPFields) -> AuthenticationSettings {
        let credentials = credentials
        guard isForAll else { return AuthenticationSettings(credentials: credentials) }
        let value: String
        switch proof {
        case .password(let user, let password, .basic):
            value = "Basic \(Data("\(user):\(password)".utf8).base64EncodedString())"
        case .bearer(let token): value = "Bearer \(token)"
        case .password: return AuthenticationSettings(attemptLimit: 1) { _ in credentials }
        }
        if fields[.authorization] == nil { fields[.authorization] = value }
        return AuthenticationSettings()
    }
}

/// Asks for a password on the terminal.
enum PasswordPrompt {
    /// The password; `nil` without a terminal.
    static func password(of user: String) async -> String? {
        await Console.run { () -> String? in
            let opened = try? FileDescriptor.open(FilePath("/dev/tty"), .readWrite, options: .closeOnExec)
            guard let terminal = opened else { return nil }
            defer { try? terminal.close() }
            return try? ask("Enter host password for user '\(user)':", on: terminal)
        }
    }

    private static func ask(_ question: String, on terminal: FileDescriptor) throws -> String {
        var shown = termios()
        guard unsafe tcgetattr(terminal.rawValue, &shown) == 0 else { throw Errno(rawValue: ENOTTY) }
        var hidden = shown
        hidden.c_lflag &= ~tcflag_t(ECHO)
        // A signal during the prompt turns the echo on again.
        let state = shown
        SignalHandler.update { $0.terminal = (terminal.rawValue, state) }
        defer {
            SignalHandler.update { $0.terminal = nil }
            _ = unsafe tcsetattr(terminal.rawValue, TCSANOW, &shown)
        }
        guard unsafe tcsetattr(terminal.rawValue, TCSANOW, &hidden) == 0 else {
            throw Errno(rawValue: ENOTTY)
        }
        try terminal.writeAll(question.utf8)
        var line: [UInt8] = []
        while line.count < 4096, let byte = try terminal.bytes(atMost: 1).first, byte != 10 {
            line.append(byte)
        }
        try terminal.writeAll("\n".utf8)
        return String(decoding: line, as: UTF8.self)
    }
}

/// The file of `SSLKEYLOGFILE` for the secrets of connections. As in curl, a file that cannot be written fails no request.
enum KeyLogPlan {
    private static var name: String? { Environment["SSLKEYLOGFILE"].flatMap { $0.isEmpty ? nil : $0 } }

    /// The file; `nil` for none, and for a file that cannot be appended to.
    static var file: String? { name.flatMap { KeyLogFile.fault(at: $0) == nil ? $0 : nil } }

    /// Reports a file that cannot be appended to.
    /// - Parameter asJSON: Whether programs read the warning.
    static func warn(asJSON: Bool = false) async {
        guard let name, let fault = KeyLogFile.fault(at: name) else { return }
        let message = "SSLKEYLOGFILE: nothing is kept in “\(name)”: \(fault)"
        let line = asJSON ? DownloadJSON.warning(message) : "martlet: warning: \(message)"
        await Console.complain("\(line)\n")
    }
}
