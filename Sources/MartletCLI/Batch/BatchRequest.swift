import HTTPTypes
import Martlet

/// A request of a batch, read from its line.
struct BatchRequest: Sendable {
    /// What is asked for.
    enum Operation: String, Sendable { case fetch, reset, stats }

    /// The number that the reply carries, as it was written; null while none was read.
    var sequence = JSONValue.null
    var operation = Operation.fetch
    var url = ""
    var method = "GET"
    var headers = BatchHeaders()
    var body: [UInt8]?
    /// Whether content codings are undone; `nil` where nothing is said, which leaves those that the request itself asks for.
    var decompresses: Bool?
    var version = HTTPVersion.http11
    var bodyLimit: Int?
    var timeout: Duration?
    var startsClean = false
    var keepsPath = false
    var connection = BatchConnection()
    var proxy = ProxyPlan.Wish()
    var followsRedirects = false
    var redirectLimit = 20
    var statusesThatKeepMethod: Set<Int> = []
    var trustsOtherOrigins = false
    var redirectSchemes = Set(HTTPURL.Scheme.allCases)
    var identity: CallerIdentity?
    var retryCount = 0
    package var cacheMode = CacheMode.standard

    /// Reads a line. The number is kept even if the rest is refused.
    static func read(_ line: [UInt8]) -> (sequence: JSONValue, request: Result<BatchRequest, BatchFault>) {
        var request = BatchRequest()
        do throws(BatchFault) {
            try request.take(line)
            return (request.sequence, .success(request))
        } catch {
            return (request.sequence, .failure(error))
        }
    }

    private mutating func take(_ line: [UInt8]) throws(BatchFault) {
        let value: JSONValue
        do throws(JSONError) {
            value = try JSONReader.value(of: line)
        } catch {
            throw BatchFault(.other, error.description)
        }
        guard case .object(let members) = value else {
            throw BatchFault(.other, "the line is not a JSON object")
        }
        sequence = members["seq"] ?? .null
        guard case .number = sequence else {
            sequence = .null
            throw BatchFault(.other, "“seq” must be a number")
        }
        for member in members where member.name != "seq" { try set(member.name, member.value) }
        guard operation != .fetch || !url.isEmpty else { throw BatchFault(.badURL, "there is no URL") }
    }

    private mutating func set(_ name: String, _ value: JSONValue) throws(BatchFault) {
        let member = BatchMember(name: name, value: value)
        switch name {
        case "op":
            let text = try member.string()
            guard let operation = Operation(rawValue: text) else {
                throw BatchFault(.unsupported, "operation “\(text)” is unknown")
            }
            self.operation = operation
        case "url": url = try member.string()
        case "method": method = try member.string()
        case "headers": headers = try BatchHeaders(member)
        case "body": body = member.isNull ? nil : try member.bytes()
        case "decompress": decompresses = try member.bool()
        case "http_version":
            let text = try member.string()
            guard let version = HTTPVersion(rawValue: text) else {
                throw BatchFault(.unsupported, "HTTP version “\(text)” is not supported")
            }
            self.version = version
        case "max_body": bodyLimit = member.isNull ? nil : try member.count()
        case "timeout_ms": timeout = member.isNull ? nil : .milliseconds(try member.count())
        case "first": startsClean = try member.bool()
        case "path_as_is": keepsPath = try member.bool()
        case "connect_to":
            connection.redirections = try member.array().map { (item) throws(BatchFault) in
                try BatchConnection.redirection(try item.string())
            }
        case "ca_file": connection.authorityFile = member.isNull ? nil : try member.string()
        case "proxy": proxy.address = member.isNull ? nil : try member.string()
        case "proxy_user": proxy.user = member.isNull ? nil : try member.string()
        case "proxy_auth":
            let text = try member.string()
            guard let scheme = Credentials.PasswordScheme(rawValue: text) else {
                throw BatchFault(.unsupported, "“proxy_auth”: “\(text)” is not one of basic, digest and any")
            }
            proxy.scheme = scheme
        case "proxytunnel": proxy.tunnelsEverything = try member.bool()
        default: try setPolicy(member)
        }
    }

    /// Members about what comes of an answer.
    private mutating func setPolicy(_ member: BatchMember) throws(BatchFault) {
        switch member.name {
        case "redirect":
            switch try member.string() {
            case "follow": followsRedirects = true
            case "manual": followsRedirects = false
            case let text:
                throw BatchFault(.unsupported, "“redirect”: “\(text)” is neither follow nor manual")
            }
        case "max_redirects": redirectLimit = member.isNull ? 20 : try member.count()
        case "keep_method": statusesThatKeepMethod = member.isNull ? [] : try BatchRequest.statuses(member)
        case "proto_redir":
            let text = try member.string()
            do throws(UsageError) {
                redirectSchemes = try SchemeList.applying(text, to: redirectSchemes, "“proto_redir”")
            } catch {
                throw BatchFault(.unsupported, error.description)
            }
        case "trusted_redirect": trustsOtherOrigins = try member.bool()
        case "auth": identity = try BatchAuthentication.identity(member)
        case "cookie_jar": connection.usesCookies = try member.bool()
        case "retry":
            retryCount = try member.count()
            guard retryCount <= 1000 else { throw BatchFault(.other, "“retry” is at most 1000") }
        case "cache": cacheMode = try BatchRequest.cacheMode(member)
        default: throw BatchFault(.unsupported, "the key “\(member.name)” is unknown")
        }
    }

    /// How the cache is used, in the words of fetch().
    private static func cacheMode(_ member: BatchMember) throws(BatchFault) -> CacheMode {
        switch try member.string() {
        case "default": return .standard
        case "no-cache": return .revalidate
        case "force-cache": return .preferCache
        case "only-if-cached": return .onlyIfCached
        case "none", "no-store": return .noStore
        case "reload": return .reload
        case let text:
            throw BatchFault(
                .unsupported,
                "“cache”: “\(text)” is not one of none, default, no-cache, force-cache, only-if-cached, no-store and reload"
            )
        }
    }

    /// Statuses after which a method may be kept.
    private static func statuses(_ member: BatchMember) throws(BatchFault) -> Set<Int> {
        var statuses: Set<Int> = []
        for item in try member.array() {
            let status = try item.count()
            guard (301...303).contains(status) else {
                throw BatchFault(.unsupported, "“keep_method”: \(status) is none of 301, 302 and 303")
            }
            statuses.insert(status)
        }
        return statuses
    }
}

extension BatchRequest {
    /// What the call does otherwise than its session.
    /// - Parameter fields: Given what the policies want to be sent along.
    func policies(_ fields: inout HTTPFields) -> RequestOptions {
        var options = RequestOptions(
            timeouts: Timeouts(total: timeout), bodyLimit: bodyLimit.map { ByteCount($0) },
            decompresses: decompresses)
        options.version = version
        options.omittedFields = headers.omitted
        options.cacheMode = cacheMode
        if followsRedirects {
            var policy = RedirectPolicy.follow(limit: redirectLimit)
            // As with curl, which goes where it is sent: what is secret stays behind anyway.
            policy.allowsDowngrade = true
            policy.statusesThatKeepMethod = statusesThatKeepMethod
            policy.trustsOtherOrigins = trustsOtherOrigins
            policy.schemes = redirectSchemes
            options.redirects = policy
        }
        if let identity {
            let isForAll = followsRedirects && trustsOtherOrigins
            options.authentication = isForAll ? identity.settingsForAll(&fields) : identity.settings
        }
        if retryCount > 0 { options.retry = .transient(attempts: retryCount + 1, budget: nil) }
        return options
    }
}

/// The credentials that a request of a batch brings along.
enum BatchAuthentication {
    /// Reads `{"type":"basic","user":"…","password":"…"}`; null is none.
    static func identity(_ member: BatchMember) throws(BatchFault) -> CallerIdentity? {
        if member.isNull { return nil }
        var type: String?
        var user: String?
        var password = ""
        for part in try member.object() {
            switch part.name {
            case "auth.type": type = try part.string()
            case "auth.user": user = try part.string()
            case "auth.password": password = try part.string()
            default: throw BatchFault(.unsupported, "the key “\(part.name)” is unknown")
            }
        }
        guard let type, let user else { throw BatchFault(.other, "“auth” needs a type and a user") }
        guard let scheme = Credentials.PasswordScheme(rawValue: type) else {
            throw BatchFault(.unsupported, "“auth.type”: “\(type)” is not one of basic, digest and any")
        }
        return CallerIdentity(.password(user: user, password: password, scheme: scheme))
    }
}

/// The fields of a request of a batch.
struct BatchHeaders: Sendable {
    /// Fields to send, in order.
    private(set) var fields = HTTPFields()
    /// Defaults that are left out.
    private(set) var omitted: Set<HTTPField.Name> = []

    /// No fields.
    init() {}

    /// Reads `[["Name","value"],["Accept",null]]`.
    init(_ member: BatchMember) throws(BatchFault) {
        for item in try member.array() {
            let pair = try item.array()
            guard pair.count == 2 else {
                throw BatchFault(.other, "“headers” must be an array of names and values in pairs")
            }
            let text = try pair[0].string()
            guard let name = HTTPField.Name(text) else {
                throw BatchFault(.other, "“\(text)” is not a field name; nothing was sent")
            }
            if pair[1].isNull { try omit(name) } else { try add(name, pair[1].bytes()) }
        }
    }

    private mutating func omit(_ name: HTTPField.Name) throws(BatchFault) {
        guard name != .contentLength, name != .transferEncoding else {
            throw BatchFault(.unsupported, "\(name.rawName) frames the body and cannot be left out")
        }
        omitted.insert(name)
    }

    private mutating func add(_ name: HTTPField.Name, _ value: [UInt8]) throws(BatchFault) {
        guard value.allSatisfy({ ($0 >= 0x20 && $0 != 0x7F) || $0 == 9 }) else {
            throw BatchFault(.other, "the value of \(name.rawName) has a control character; nothing was sent")
        }
        guard name.canonicalName != "host" || fields[name] == nil else {
            throw BatchFault(.other, "Host is given twice; nothing was sent")
        }
        fields.append(HTTPField(name: name, value: value))
    }
}
