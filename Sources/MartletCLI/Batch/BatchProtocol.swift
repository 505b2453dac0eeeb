import Martlet

/// A request of a batch, read from its line.
struct BatchRequest: Sendable {
    enum Operation: String, Sendable { case fetch, reset, stats }

    /// The maximum nesting of arrays and objects in a line.
    private static let depthLimit = 32

    /// The member `seq` as it was written, which the reply repeats; null until it is read.
    private(set) var sequence = JSONValue.null
    private(set) var operation = Operation.fetch
    private(set) var url = ""
    private(set) var method = "GET"
    /// The fields, with a limit: `HTTPFields` traps at 65,535 fields.
    private(set) var fields = HTTPHeaders()
    private var omittedFields: Set<HTTPField.Name> = []
    private(set) var body: [UInt8]?
    /// Whether content codings are decoded. With `nil` they are, unless the request itself sets `Accept-Encoding`.
    private var decompresses: Bool?
    private var version = HTTPVersion.http11
    private var bodyLimit: Int?
    private var timeout: Duration?
    private(set) var startsClean = false
    private(set) var keepsPath = false
    private(set) var connection = BatchConnection()
    private(set) var proxy = ProxyPlan.Options()
    private var redirects = RedirectPolicy.curl(limit: 20)
    private var identity: RequestCredentials?
    private var retryCount = 0
    private(set) var cacheMode = CacheMode.standard

    /// Parses a line. `seq` is returned even if the rest is rejected.
    static func read(_ line: [UInt8]) -> (sequence: JSONValue, request: Result<BatchRequest, BatchError>) {
        var request = BatchRequest()
        do {
            try request.take(line)
            return (request.sequence, .success(request))
        } catch { return (request.sequence, .failure(BatchError(error))) }
    }

    private mutating func take(_ line: [UInt8]) throws {
        // The parser would skip a byte order mark, which is not allowed in a line.
        guard line.first != 0xEF else { throw JSONError(reason: .unexpectedByte, offset: 0) }
        let value = try JSONValue(parsing: line, depthLimit: BatchRequest.depthLimit)
        guard BatchRequest.memberCount(value) == BatchRequest.memberCount(ofText: line) else {
            throw BatchError(.other, "the line is not JSON: an object has two members of the same name")
        }
        guard case .object(let members) = value else { throw BatchError(.other, "the line is not a JSON object") }
        guard case .number? = members["seq"] else { throw BatchError(.other, "“seq” must be a number") }
        sequence = members["seq"].json
        for member in members where member.name != "seq" {
            try set(BatchMember(name: member.name, value: member.value))
        }
        guard operation != .fetch || !url.isEmpty else { throw BatchError(.badURL, "“url” is missing") }
    }

    /// The number of members of all objects in a value; members with the same name count once.
    private static func memberCount(_ value: JSONValue) -> Int {
        switch value {
        case .object(let members): members.reduce(members.count) { $0 + memberCount($1.value) }
        case .array(let elements): elements.reduce(0) { $0 + memberCount($1) }
        default: 0
        }
    }

    /// The number of members of all objects in a valid text: each has one colon outside of strings.
    private static func memberCount(ofText bytes: [UInt8]) -> Int {
        var (count, isInString, isEscaped) = (0, false, false)
        for byte in bytes {
            switch byte {
            case _ where isEscaped: isEscaped = false
            case UInt8(ascii: "\\"): isEscaped = true
            case UInt8(ascii: "\""): isInString.toggle()
            case UInt8(ascii: ":") where !isInString: count += 1
            default: break
            }
        }
        return count
    }

    private mutating func set(_ member: BatchMember) throws {
        switch member.name {
        case "op":
            let text = try member.string()
            guard let operation = Operation(rawValue: text) else {
                throw BatchError(.unsupported, "operation “\(text)” is unknown")
            }
            self.operation = operation
        case "url": url = try member.string()
        case "method": method = try member.string()
        case "headers": for item in try member.array() { try addField(item) }
        case "body": body = try member.unlessNull?.bytes()
        case "decompress": decompresses = try member.bool()
        case "http_version":
            let text = try member.string()
            guard let version = HTTPVersion(rawValue: text) else {
                throw BatchError(.unsupported, "HTTP version “\(text)” is not supported")
            }
            self.version = version
        case "max_body": bodyLimit = try member.unlessNull?.count()
        case "timeout_ms": timeout = try member.unlessNull.map { .milliseconds(try $0.count()) }
        case "first": startsClean = try member.bool()
        case "path_as_is": keepsPath = try member.bool()
        case "connect_to": connection.redirections = try member.array().map(BatchRequest.redirection)
        case "ca_file": connection.authorityFile = try member.unlessNull?.string()
        case "proxy": proxy.address = try member.unlessNull?.string()
        case "proxy_user": proxy.user = try member.unlessNull?.string()
        case "proxy_auth": proxy.scheme = try member.passwordScheme()
        case "proxytunnel": proxy.alwaysTunnels = try member.bool()
        case "redirect":
            redirects.followsRedirects = try member.choice(
                ["follow": true, "manual": false], "neither follow nor manual")
        case "max_redirects": redirects.limit = try member.unlessNull?.count() ?? 20
        case "keep_method":
            let statuses = try member.unlessNull?.array().map(BatchRequest.redirectStatus)
            redirects.methodPreservingStatuses = Set(statuses ?? [])
        case "proto_redir":
            let text = try member.string()
            redirects.schemes = try UsageError.at("“proto_redir”") { () throws(UsageError) in
                try SchemeList.applying(text, to: redirects.schemes)
            }
        case "trusted_redirect": redirects.sendsCredentialsCrossOrigin = try member.bool()
        case "auth": identity = try member.unlessNull.map(BatchRequest.identity)
        case "cookie_jar": connection.usesCookies = try member.bool()
        case "retry":
            retryCount = try member.count()
            guard retryCount <= 1000 else { throw BatchError(.other, "“retry” is at most 1000") }
        case "cache":
            // The names are the cache modes of fetch(), and “none”.
            cacheMode = try member.choice(
                [
                    "default": .standard, "no-cache": .revalidate, "force-cache": .preferCache,
                    "only-if-cached": .onlyIfCached, "none": .noStore, "no-store": .noStore, "reload": .reload,
                ], "not one of none, default, no-cache, force-cache, only-if-cached, no-store and reload")
        default: throw BatchError(.unsupported, "the key “\(member.name)” is unknown")
        }
    }

    /// Adds a field with `["Name","value"]`, or omits a default with `["Name",null]`.
    private mutating func addField(_ item: BatchMember) throws {
        let pair = try item.array()
        guard pair.count == 2 else {
            throw BatchError(.other, "“headers” must be an array of pairs: [\"Name\",\"value\"]")
        }
        let text = try pair[0].string()
        guard let name = HTTPField.Name(text) else {
            throw BatchError(.other, "“\(text)” is not a field name; nothing was sent")
        }
        guard let value = try pair[1].unlessNull?.bytes() else {
            guard name != .contentLength, name != .transferEncoding else {
                throw BatchError(.unsupported, "\(name.rawName) frames the body and cannot be removed")
            }
            omittedFields.insert(name)
            return
        }
        guard value.allSatisfy(ByteClass.isFieldValue) else {
            throw BatchError(.other, "the value of \(name.rawName) has a control character; nothing was sent")
        }
        guard name.canonicalName != "host" || fields[name] == nil else {
            throw BatchError(.other, "Host is given twice; nothing was sent")
        }
        fields.append(HTTPField(name: name, value: value))
        if let rejection = fields.rejection { throw BatchError(.other, "\(rejection); nothing was sent") }
    }

    /// Parses an override of the form `host:port:address:port`.
    private static func redirection(_ item: BatchMember) throws -> ConnectOverride {
        let text = try item.string()
        do throws(UsageError) { return try OptionValues.connectTo(text) } catch {
            throw BatchError(.other, "“connect_to”: “\(text)” is not host:port:address:port")
        }
    }

    private static func redirectStatus(_ item: BatchMember) throws -> Int {
        let status = try item.count()
        guard (301...303).contains(status) else {
            throw BatchError(.unsupported, "“keep_method”: \(status) is not 301, 302 or 303")
        }
        return status
    }

    /// Parses credentials of the form `{"type":"basic","user":"…","password":"…"}`.
    private static func identity(_ member: BatchMember) throws -> RequestCredentials {
        var type: BatchMember?
        var user: String?
        var password = ""
        for part in try member.object() {
            switch part.name {
            case "auth.type": type = part
            case "auth.user": user = try part.string()
            case "auth.password": password = try part.string()
            default: throw BatchError(.unsupported, "the key “\(part.name)” is unknown")
            }
        }
        guard let type, let user else { throw BatchError(.other, "“auth” needs a type and a user") }
        return RequestCredentials(user: user, password: password, scheme: try type.passwordScheme())
    }

    /// The options that override those of the session. Header fields for credentials are added to `fields`.
    func policies(_ fields: inout HTTPFields) -> RequestOptions {
        var options = RequestOptions(
            timeouts: Timeouts(total: timeout), bodyLimit: bodyLimit.map { ByteCount($0) }, decompresses: decompresses)
        options.version = version
        options.omittedFields = omittedFields
        options.cacheMode = cacheMode
        if redirects.followsRedirects { options.redirects = redirects }
        if let identity {
            let isForAll = redirects.followsRedirects && redirects.sendsCredentialsCrossOrigin
            options.authentication = identity.settings(isForAll: isForAll, &fields)
        }
        if retryCount > 0 { options.retry = .transient(maximumAttempts: retryCount + 1, budget: nil) }
        return options
    }
}

/// A member of a request. If its value has the wrong type, the error names the member.
struct BatchMember: Sendable {
    let name: String
    let value: JSONValue

    private func checked<Value>(_ value: Value?, _ type: String) throws -> Value {
        guard let value else { throw BatchError(.other, "“\(name)” must be \(type)") }
        return value
    }

    var unlessNull: BatchMember? { value.isNull ? nil : self }
    func string() throws -> String { try checked(value.stringValue, "a string") }

    /// Parses a string of characters up to U+00FF as bytes.
    func bytes() throws -> [UInt8] {
        try checked(ByteText.latin1Bytes(try string()), "a string of bytes: characters up to U+00FF")
    }

    func bool() throws -> Bool { try checked(value.boolValue, "true or false") }

    func count() throws -> Int {
        let count = value.intValue.flatMap { $0 < 0 ? nil : $0 }
        return try checked(count, "an integer that is not negative")
    }

    func array() throws -> [BatchMember] {
        try checked(value.arrayValue, "an array").map { BatchMember(name: name, value: $0) }
    }

    /// The members of an object, each with this member's name and a dot before its own.
    func object() throws -> [BatchMember] {
        try checked(value.objectValue, "an object").map { BatchMember(name: "\(name).\($0.name)", value: $0.value) }
    }

    func choice<Value>(_ values: [String: Value], _ otherwise: String) throws -> Value {
        let text = try string()
        guard let value = values[text] else { throw BatchError(.unsupported, "“\(name)”: “\(text)” is \(otherwise)") }
        return value
    }

    func passwordScheme() throws -> Credentials.PasswordScheme {
        try choice(["basic": .basic, "digest": .digest, "any": .any], "not one of basic, digest and any")
    }
}

enum BatchReply {
    static func line(_ sequence: JSONValue, _ exchange: HTTPExchange) -> String {
        let head = exchange.rawHead
        return line(
            sequence,
            [
                "status": head.status, "reason": JSONValue.latin1(head.reasonBytes), "headers": fields(head.fields),
                "body": JSONValue.latin1(exchange.body), "url": exchange.url.absoluteString,
                "interim": exchange.rawInterim.map { [$0.status.json, fields($0.fields)] },
                "source": exchange.source.rawValue.replacing("Cache", with: ""),
                "trailers": exchange.rawTrailers.map(fields) ?? .array([]), "timing": timing(exchange.metrics),
            ])
    }

    static func line(_ sequence: JSONValue, _ error: BatchError) -> String {
        line(sequence, ["error": error.kind.rawValue, "message": error.message], isOK: false)
    }

    static func line(_ sequence: JSONValue, _ members: JSONMembers = [:], isOK: Bool = true) -> String {
        (["seq": sequence, "ok": isOK] + members).jsonLine + "\n"
    }

    static func counts(_ pool: PoolStatus, _ cache: ResponseCache.Statistics?, descriptors: Int?) -> JSONMembers {
        let poolCounts: JSONMembers = [
            "idle": pool.idle, "leased": pool.leased, "dialling": pool.dialing, "waiting": pool.waiting,
            "opened": pool.opened, "reused": pool.reused,
        ]
        return ["pool": poolCounts, "cache": cache.map(counts), "descriptors": descriptors]
    }

    private static func counts(_ cache: ResponseCache.Statistics) -> JSONMembers {
        [
            "hits": cache.hits, "stale_hits": cache.staleHits, "validated": cache.validated, "misses": cache.misses,
            "stale_on_errors": cache.staleOnErrors, "bypasses": cache.bypasses, "shared": cache.shared,
            "unsatisfiable": cache.unsatisfiable, "revalidations": cache.revalidations, "stores": cache.stores,
            "evictions": cache.evictions, "removals": cache.removals, "bytes_served": cache.bytesServed,
            "bytes_stored": cache.bytesStored, "memory_entries": cache.memoryEntries, "memory_bytes": cache.memoryBytes,
            "disk_entries": cache.diskEntries, "disk_bytes": cache.diskBytes,
        ]
    }

    private static func fields(_ block: FieldBlock) -> JSONValue {
        block.indices.map { [JSONValue.latin1(Array(block.name(at: $0))), .latin1(Array(block.value(at: $0)))] }.json
    }

    private static func timing(_ metrics: HTTPMetrics) -> JSONMembers {
        [
            "dns": metrics.dns.map(milliseconds), "connect": metrics.connect.map(milliseconds),
            "tls": metrics.tls.map(milliseconds), "first_byte": metrics.firstByte.map(milliseconds),
            "total": milliseconds(metrics.total),
        ]
    }

    /// Milliseconds with three decimals.
    private static func milliseconds(_ duration: Duration) -> JSONValue {
        let (seconds, attoseconds) = duration.components
        let micros = seconds * 1_000_000 + attoseconds / 1_000_000_000_000
        return .number("\(micros / 1000).\(String(1000 + micros % 1000).dropFirst())")
    }
}

/// The error in the reply to a request.
struct BatchError: Error, Sendable {
    enum Kind: String, Sendable {
        case malformed = "protocol"
        case truncated, empty, connect, timeout
        case tooLarge = "too_large"
        case tooManyRedirects = "too_many_redirects"
        case decode
        case badURL = "bad_url"
        case unsupported, tls, cancelled, other
    }

    var kind: Kind
    var message: String

    init(_ kind: Kind, _ message: String) { (self.kind, self.message) = (kind, message) }

    init(_ error: any Error) {
        switch error {
        case let error as BatchError: self = error
        case is CancellationError: self.init(.cancelled, "the request was cancelled")
        case let error as HTTPError: self.init(BatchError.kind(of: error), error.message)
        case let error as HTTPURL.ParseError: self.init(.badURL, error.description)
        case let error as UsageError: self.init(.unsupported, error.description)
        default: self.init(.other, "\(error)")
        }
    }

    private static func kind(of error: HTTPError) -> Kind {
        switch error.code {
        case .protocolViolation, .limitExceeded, .unacceptableContentType, .unacceptableBody, .authenticationFailed:
            .malformed
        case .truncated: .truncated
        case .emptyResponse: .empty
        case .connectionLost: error.phase == .receivingBody ? .truncated : .empty
        case .resolutionFailed, .connectFailed, .proxyFailed: .connect
        case .timedOut: .timeout
        case .bodyTooLarge: .tooLarge
        case .contentDecodingFailed: .decode
        case .invalidURL, .redirectRejected: .badURL
        case .tooManyRedirects: .tooManyRedirects
        case .tlsFailed: isTruncation(error) ? .truncated : .tls
        default: .other
        }
    }

    /// Whether the peer cut an established TLS connection.
    private static func isTruncation(_ error: HTTPError) -> Bool {
        (error.underlying as? TLSError)?.kind == .truncated && error.phase != .tlsHandshake
    }
}
