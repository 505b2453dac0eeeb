import FoundationEssentials
import Glibc
import Martlet

/// The credentials of a group, including those from a netrc or a prompt.
struct CredentialPlan: Sendable {
    private var identity: RequestCredentials?
    private var netrc: NetrcFile?
    private var netrcPrecedesURL = false
    private var scheme = Credentials.PasswordScheme.basic
    private var isForAll = false

    /// Reads the netrc, and prompts for a missing password.
    static func load(_ options: TransferOptions) async throws(UsageError) -> CredentialPlan {
        var plan = CredentialPlan()
        plan.isForAll = options.redirects.followsRedirects && options.redirects.sendsCredentialsCrossOrigin
        if options.offersDigest { plan.scheme = options.offersBasic ? .any : .digest }
        if let token = options.bearer {
            plan.identity = RequestCredentials(bearer: token)
        } else if let text = options.user {
            let name = text.prefix { $0 != ":" }
            let password =
                name.endIndex < text.endIndex
                ? String(text[text.index(after: name.endIndex)...]) : try await PasswordPrompt.password(of: text) ?? ""
            plan.identity = RequestCredentials(user: String(name), password: password, scheme: plan.scheme)
        } else if options.netrc != .none {
            plan.netrc = try await file(options.netrcFile, isOptional: options.netrc == .optional)
            plan.netrcPrecedesURL = options.netrc == .required
        }
        return plan
    }

    /// Reads a netrc. A file of `--netrc-file` must exist unless it is optional; `~/.netrc` may be missing.
    private static func file(_ named: String?, isOptional: Bool) async throws(UsageError) -> NetrcFile? {
        let home = Environment["HOME"].flatMap { $0.isEmpty ? nil : FilePath($0).appending(".netrc") }
        guard let path = named.map({ FilePath($0) }) ?? home else { return nil }
        do { return try await NetrcFile.load(path) } catch let error as StorageError
            where (named == nil || isOptional) && error.isMissingFile
        { return nil } catch { throw UsageError("could not use “\(path.string)”: \(error)", status: .readFailed) }
    }

    /// Whether one user or token is given for all hosts. A netrc has separate credentials for each host.
    var isOneForAll: Bool { identity != nil }

    /// The settings for calls to any origin. A user or token is sent only to `origin`; a netrc applies to each host.
    func settings(for origin: HTTPURL.Origin?) -> AuthenticationSettings {
        if let identity { return origin.map(identity.settings) ?? AuthenticationSettings() }
        return AuthenticationSettings(netrc: netrc, netrcScheme: scheme)
    }

    /// The settings for calls that start at a URL. A user in the URL applies to its origin, unless one is given for all.
    func settings(for url: HTTPURL?) -> AuthenticationSettings {
        var settings = settings(for: url?.origin)
        if let url, let user = url.user, !isOneForAll {
            settings.credentialsByOrigin[url.origin] = .basic(user: user, password: url.password ?? "")
        }
        return settings
    }

    /// Sets the credentials of a call. With `--location-trusted`, the field `Authorization` may be added to `fields`.
    func apply(to options: inout RequestOptions, _ fields: inout HTTPFields, url: HTTPURL) {
        let ofURL = url.user.map { RequestCredentials(user: $0, password: url.password ?? "", scheme: scheme) }
        if let identity = identity ?? (netrc == nil ? ofURL : nil) {
            options.authentication = identity.settings(isForAll: isForAll, &fields)
        } else if let netrc {
            var settings = AuthenticationSettings(netrc: netrc, netrcScheme: scheme)
            if let user = url.user {
                // The user in the URL takes precedence; a netrc with precedence can only replace the user's password.
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

struct RequestCredentials: Sendable {
    private let credentials: Credentials
    /// The value of `Authorization` for credentials that need no challenge.
    private let preemptiveValue: String?

    init(user: String, password: String, scheme: Credentials.PasswordScheme) {
        credentials = Credentials(user: user, password: password, scheme: scheme)
        let isBasic = scheme == .basic
        preemptiveValue = isBasic ? "Basic \(Data("\(user):\(password)".utf8).base64EncodedString())" : nil
    }

    init(bearer token: String) { (credentials, preemptiveValue) = (.bearer(token), "Bearer \(token)") }

    /// The settings for calls to any origin that send the credentials only to `origin`.
    func settings(for origin: HTTPURL.Origin) -> AuthenticationSettings {
        AuthenticationSettings(credentialsByOrigin: [origin: credentials])
    }

    /// The settings for the origin of a call's first request or, with `isForAll` (`--location-trusted`), for all
    /// origins. For all origins, Basic and bearer credentials become the field `Authorization`, which redirects retain,
    /// unless it is set; other credentials are sent in reply to each challenge.
    func settings(isForAll: Bool, _ fields: inout HTTPFields) -> AuthenticationSettings {
        guard isForAll else { return AuthenticationSettings(credentials: credentials) }
        guard let preemptiveValue else {
            return AuthenticationSettings(attemptLimit: 1) { [credentials] _ in credentials }
        }
        fields[.authorization] = fields[.authorization] ?? preemptiveValue
        return AuthenticationSettings()
    }
}

enum PasswordPrompt {
    static func password(of user: String) async throws(UsageError) -> String? {
        let line = await Console.run { () -> [UInt8]? in
            let opened = try? FileDescriptor.open(FilePath("/dev/tty"), .readWrite, options: .closeOnExec)
            guard let terminal = opened else { return nil }
            defer { try? terminal.close() }
            return try? ask("Enter host password for user '\(user)':", on: terminal)
        }
        guard let line else { return nil }
        guard let password = String(validating: line, as: UTF8.self) else {
            throw UsageError("the password is not UTF-8")
        }
        return password
    }

    private static func ask(_ question: String, on terminal: FileDescriptor) throws -> [UInt8] {
        var shown = termios()
        guard unsafe tcgetattr(terminal.rawValue, &shown) == 0 else { throw Errno(rawValue: ENOTTY) }
        var hidden = shown
        hidden.c_lflag &= ~tcflag_t(ECHO)
        // If a signal ends the program during the prompt, the handler restores this state, which has the echo on.
        let state = shown
        SignalHandler.update { $0.terminal = (terminal.rawValue, state) }
        defer {
            _ = unsafe tcsetattr(terminal.rawValue, TCSANOW, &shown)
            SignalHandler.update { $0.terminal = nil }
        }
        guard unsafe tcsetattr(terminal.rawValue, TCSANOW, &hidden) == 0 else { throw Errno(rawValue: ENOTTY) }
        try terminal.writeAll(question.utf8)
        var line: [UInt8] = []
        while line.count < 4096, let byte = try terminal.bytes(atMost: 1).first, byte != 10 { line.append(byte) }
        try terminal.writeAll("\n".utf8)
        return line
    }
}

/// The file for the secrets of TLS connections, named by `SSLKEYLOGFILE`. As in curl, requests do not fail if it cannot
/// be written.
enum KeyLogPlan {
    private static var name: String? { Environment["SSLKEYLOGFILE"].flatMap { $0.isEmpty ? nil : $0 } }

    /// The file; `nil` for none, and for a file that cannot be appended to.
    static var file: String? { name.flatMap { KeyLogFile.error(at: $0) == nil ? $0 : nil } }

    /// Reports a file that cannot be appended to, as text or as JSON.
    static func warn(asJSON: Bool = false) async {
        guard let name, let error = KeyLogFile.error(at: name) else { return }
        let message = "SSLKEYLOGFILE: secrets are not written to “\(name)”: \(error)"
        let line = asJSON ? DownloadJSON.warning(message) : "martlet: warning: \(message)"
        await Console.printError("\(line)\n")
    }
}

/// Reads cookies from the files of `-b`, and writes them to that of `-c`.
enum CookiePlan {
    /// Whether cookies of responses are stored and sent.
    static func isActive(_ options: TransferOptions) -> Bool {
        !options.cookieFiles.isEmpty || options.cookieOutput != nil
    }

    /// A jar like that of curl: http to the loopback interface counts as secure.
    static func makeJar() -> CookieJar { CookieJar(trustsLoopback: true) }

    /// Reads the files of a group: lines in Netscape's format, and lines `Set-Cookie: …` as in heads. As with curl, an
    /// unreadable file counts as empty; an invalid `Set-Cookie` line is reported.
    static func fill(_ jar: CookieJar, for options: TransferOptions) async {
        for name in options.cookieFiles where !name.isEmpty {
            guard let bytes = try? InputFile.contents(of: name) else { continue }
            let read = options.dropsSessionCookies ? makeJar() : jar
            await read.importNetscape(bytes)
            for value in headerValues(bytes) {
                guard let problem = await store(value, in: read), !options.global.isSilent else { continue }
                await Console.report("warning: option -b: a Set-Cookie line of “\(name)” \(problem)")
            }
            guard options.dropsSessionCookies else { continue }
            await read.removeSessionCookies()
            await jar.importNetscape(await read.exportNetscape())
        }
    }

    private static func headerValues(_ bytes: [UInt8]) -> [[UInt8]] {
        let name = "set-cookie:"
        return bytes.split(whereSeparator: { $0 == 10 || $0 == 13 }).compactMap { line in
            let start = String(decoding: line.prefix(name.utf8.count), as: UTF8.self)
            return start.lowercased() == name ? Array(line.dropFirst(name.utf8.count)) : nil
        }
    }

    /// Stores a cookie as if the host in its Domain attribute had set it. Returns the reason if it is not stored.
    private static func store(_ value: [UInt8], in jar: CookieJar) async -> String? {
        // Only for the domain, which is ASCII: the jar stores the bytes.
        let text = String(decoding: value, as: UTF8.self)
        let domains = text.split(separator: ";").dropFirst().compactMap { part -> Substring? in
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard pair.count == 2, HeaderLines.trimmed(pair[0]).lowercased() == "domain" else { return nil }
            return HeaderLines.trimmed(pair[1])
        }
        guard let domain = domains.last?.drop(while: { $0 == "." }), !domain.isEmpty else {
            return "has no Domain and is never sent"
        }
        let host = domain.contains(":") && !domain.hasPrefix("[") ? "[\(domain)]" : String(domain)
        guard let url = try? HTTPURL("https://\(host)/") else { return "has a Domain that is not a host" }
        return await jar.store(setCookieBytes: [value], from: url).first.map { "is not stored: \($0)" }
    }

    /// Writes all cookies to the file of a group. A failure is reported, and does not change the exit code.
    static func write(_ jar: CookieJar, to name: String, _ global: GlobalOptions) async {
        do {
            if name == "-" {
                try await Console.write(await jar.exportNetscape())
            } else if let status = FileInput.status(of: name), status.type != S_IFREG {
                // A file such as `/dev/null` must not be replaced.
                let text = await jar.exportNetscape()
                let file = try FileDescriptor.open(FilePath(name), .writeOnly, options: .closeOnExec)
                defer { try? file.close() }
                try await Console.write(text, to: file, named: name)
            } else {
                try await jar.exportNetscape(to: FilePath(name))
            }
        } catch { if global.printsErrors { await Console.report("could not save cookies in “\(name)”: \(error)") } }
    }
}
