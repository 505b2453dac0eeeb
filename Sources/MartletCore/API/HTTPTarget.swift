public import FoundationEssentials

/// The URL of a call: a `String`, a `Substring`, an ``HTTPURL``, a Foundation `URL`, or an `HTTPRequest` with its
/// method and its header fields. A host also accepts the segments of a path: `["issues", id]`, `.path("users", 42)`.
///
/// A string is parsed when the call is made; the error of an invalid one has the code ``HTTPError/Code/invalidURL`` and
/// names the invalid character. An ``HTTPSession`` needs an absolute URL; a host also accepts a path.
public protocol HTTPTarget: Sendable {
    /// The target as the caller gave it.
    var httpTarget: HTTPTargetForm { get }
}

/// The value of an ``HTTPTarget``, in the form that the caller gave.
public enum HTTPTargetForm: HTTPTarget {
    /// A text that is not parsed yet: an absolute URL, or a path of a host.
    case text(String)
    /// A parsed URL.
    case url(HTTPURL)
    /// A request with its method and its header fields.
    case request(HTTPRequest)
    /// The segments of a path of a host, which are not percent-encoded yet.
    case segments([String])

    /// The method of a request; `nil` for a URL.
    package var method: HTTPRequest.Method? { if case .request(let request) = self { request.method } else { nil } }
    /// The value itself.
    public var httpTarget: HTTPTargetForm { self }
}

extension String: HTTPTarget {
    /// The text of a URL.
    public var httpTarget: HTTPTargetForm { .text(self) }
}

extension Substring: HTTPTarget {
    /// The text of a URL.
    public var httpTarget: HTTPTargetForm { .text(String(self)) }
}

extension HTTPURL: HTTPTarget {
    /// The parsed URL.
    public var httpTarget: HTTPTargetForm { .url(self) }

    /// Parses the text of a Foundation `URL`. Some texts that `URL` accepts are not valid here.
    /// - Throws: ``ParseError``, with the position in `url.absoluteString`.
    public init(_ url: URL) throws(ParseError) { try self.init(url.absoluteString) }
}

extension URL: HTTPTarget {
    /// The text of the URL, resolved against its base.
    public var httpTarget: HTTPTargetForm { .text(absoluteString) }

    /// Creates a Foundation `URL` from a URL, with user info and fragment; `nil` if Foundation cannot parse it.
    public init?(_ url: HTTPURL) { self.init(string: url.absoluteString) }
}

extension HTTPRequest: HTTPTarget {
    /// The request itself.
    public var httpTarget: HTTPTargetForm { .request(self) }
    /// The URL that the request is for; `nil` if its scheme, authority and path are not those of an ``HTTPURL``.
    public var httpURL: HTTPURL? { try? HTTPSession.url(of: self) }

    /// Creates a request to a URL, with header fields.
    public init(method: HTTPRequest.Method, url: HTTPURL, headers: HTTPFields = HTTPFields()) {
        self.init(
            method: method, scheme: url.scheme.rawValue, authority: url.hostFieldValue, path: url.requestTarget,
            headerFields: headers)
    }

    /// Creates a request to a URL given as a string.
    /// - Throws: An ``HTTPError`` with the code `.invalidURL`, whose message names the invalid character.
    public init(method: HTTPRequest.Method, url: String, headers: HTTPFields = HTTPFields()) throws(HTTPError) {
        self.init(method: method, url: try HTTPSession.url(url), headers: headers)
    }
}

extension HTTPTargetForm {
    /// Returns the URL and the header fields, for a feature that makes its own GET requests.
    /// - Throws: An ``HTTPError``: `.invalidURL`; `.invalidRequest` for a request with another method.
    package func partsOfGET() throws(HTTPError) -> (url: HTTPURL, fields: HTTPFields) {
        let url = try absoluteURL()
        guard case .request(let request) = self else { return (url, HTTPFields()) }
        guard request.method == .get else {
            throw HTTPError(
                .invalidRequest, phase: .preparing,
                message: "this call sends GET, but the request's method is \(request.method.rawValue)",
                method: request.method, url: url)
        }
        return (url, request.headerFields)
    }

    /// Returns the absolute URL. Throws for path segments, which need a host.
    fileprivate func absoluteURL() throws(HTTPError) -> HTTPURL {
        switch self {
        case .text(let text): return try HTTPSession.url(text)
        case .url(let url): return url
        case .segments: throw HTTPSession.segmentsWithoutHost
        case .request(let request): return try HTTPSession.url(of: request)
        }
    }
}

extension HTTPSession {
    /// Creates a call with the parameters of a verb, without starting it.
    /// - Parameters:
    ///   - method: The method; `nil` for the method of a request, or, for a URL, GET without a body and POST with one.
    ///   - headers: Fields that replace the request's fields of the same names.
    package nonisolated func call(
        _ method: HTTPRequest.Method?, _ target: some HTTPTarget, _ query: ParameterValue, _ headers: HTTPHeaders,
        _ body: HTTPBody, _ timeout: Duration?, _ options: RequestOptions, _ validate: ResponseValidator?
    ) throws -> Call {
        var options = options.limited(to: timeout)
        if let validate { options.validator = validate }
        let target = target.httpTarget
        if case .request(var request) = target {
            if let method { request.method = method }
            let url = try complete(&request, query, headers)
            return try Call(request: request, url: url, body: body, options: options, settings: settings)
        }
        let url = try adding(query, to: try target.absoluteURL())
        return try Call(
            method ?? (body.isPresent ? .post : .get), try headers.checked(url), url: url, body: body, options: options,
            settings: settings)
    }

    /// Returns the request of a call, without user name and password, for features that store or repeat it.
    package nonisolated func request(
        for target: some HTTPTarget, query: ParameterValue = .null, body: HTTPBody = .none,
        headers: HTTPHeaders = HTTPHeaders()
    ) throws -> HTTPRequest {
        let target = target.httpTarget
        if case .request(var request) = target {
            _ = try complete(&request, query, headers)
            return request
        }
        let url = try target.absoluteURL()
        return HTTPRequest(
            method: body.isPresent ? .post : .get, url: try adding(query, to: url), headers: try headers.checked(url))
    }

    /// Adds a query and header fields to a request.
    /// - Returns: The URL of the request.
    private nonisolated func complete(_ request: inout HTTPRequest, _ query: ParameterValue, _ headers: HTTPHeaders)
        throws -> HTTPURL
    {
        var url = try HTTPSession.url(of: request)
        if query != .null {
            url = try adding(query, to: url)
            request.path = url.requestTarget
        }
        if !headers.isEmpty { request.headerFields = try headers.checked(url, over: request.headerFields) }
        return url
    }

    /// Returns the URL with parameters appended to its query.
    package nonisolated func adding(_ query: ParameterValue, to url: HTTPURL) throws -> HTTPURL {
        if case .null = query { return url }
        let encoding = settings.configuration.queryEncoding
        do { return try url.appending(encodedQuery: try encoding.encoded(query)) } catch let error as HTTPURL.ParseError
        { throw HTTPSession.invalidURL(error.description, underlying: error) } catch let error as ParameterError {
            throw HTTPSession.invalidQuery(error, url)
        }
    }

    /// Encodes parameters as a tree.
    package static func query(_ parameters: some Encodable) throws -> ParameterValue {
        do { return try ParameterValue(encoding: parameters) } catch { throw invalidQuery(error) }
    }

    /// Returns the error of parameters that cannot be encoded.
    package static func invalidQuery(_ error: any Error, _ url: HTTPURL? = nil, _ method: HTTPRequest.Method? = nil)
        -> HTTPError
    {
        let reason = (error as? ParameterError)?.description ?? "the encoder rejected them"
        return HTTPError(
            .invalidRequest, phase: .preparing, message: "the parameters could not be encoded: \(reason)",
            method: method, url: url, underlying: error)
    }

    /// Returns the URL that a request is for.
    package static func url(of request: HTTPRequest) throws(HTTPError) -> HTTPURL {
        guard let scheme = request.scheme, let authority = request.authority else {
            throw invalidURL("the request has no scheme or authority; use an absolute http or https URL")
        }
        let path = Call.isAsteriskForm(request) ? "/" : request.path ?? "/"
        // The joined parts are parsed as one URL: a delimiter in the authority would change the host or the path.
        guard !authority.utf8.contains(where: { "/?#@".utf8.contains($0) }) else {
            throw invalidURL("the request's authority contains more than a host and a port")
        }
        guard path.isEmpty || path.utf8.first == UInt8(ascii: "/") || path.utf8.first == UInt8(ascii: "?") else {
            throw invalidURL("the request's path does not begin with a slash")
        }
        // Parsing a URL removes dot segments. If the request's path has some, the caller wants to send them.
        return try url("\(scheme)://\(authority)\(path)", pathAsIs: true)
    }

    package static func url(_ string: String, pathAsIs: Bool = false) throws(HTTPError) -> HTTPURL {
        do throws(HTTPURL.ParseError) { return try HTTPURL(string, pathAsIs: pathAsIs) } catch {
            throw invalidURL("invalid URL “\(withoutSecrets(string))”: \(error)", underlying: error)
        }
    }

    /// The error of a call on a session with path segments, which only a host accepts.
    package static var segmentsWithoutHost: HTTPError {
        invalidURL("path segments need a host: create one with session.host(_:), or append them to an HTTPURL")
    }

    /// Returns the text of an invalid URL for an error message: at most 200 characters, without query and fragment.
    /// `***` replaces user info, and a port that is not a number, because it may be a password without its `@`.
    package static func withoutSecrets(_ text: String) -> String {
        let head = text.prefix { $0 != "?" && $0 != "#" }
        let start = head.firstRange(of: "//")?.upperBound ?? head.startIndex
        let host = head[start...].prefix { $0 != "/" }
        let port = host.lastIndex(of: ":").map { host[$0...].dropFirst() }
        let shown =
            if let at = head.lastIndex(of: "@") {
                "\(start <= at ? head[..<start] : "")***\(head[at...])"
            } else if let port, start > head.startIndex, !port.allSatisfy(\.isNumber), !host.hasSuffix("]") {
                "\(head[..<port.startIndex])***\(head[port.endIndex...])"
            } else { String(head) }
        return "\(shown.prefix(200).debugDescription.dropFirst().dropLast())\(shown.count > 200 ? "…" : "")"
    }

    private static func invalidURL(_ message: String, underlying: HTTPURL.ParseError? = nil) -> HTTPError {
        HTTPError(.invalidURL, phase: .preparing, message: message, underlying: underlying)
    }
}

extension ParameterValue {
    /// Creates the value of a variable, for a literal of mixed kinds: `["q": .value(text), "page": .value(page)]`.
    ///
    /// The variable is of any `Encodable` type. `nil` becomes ``null``, which a query omits by default.
    /// - Throws: An ``HTTPError`` with the code `.invalidRequest` if the variable cannot be encoded.
    public static func value(_ variable: some Encodable) throws -> ParameterValue { try HTTPSession.query(variable) }

    // Texts, integers and Booleans can always be encoded, so these functions do not throw. A variable that is not
    // optional needs a function of its own: its conversion to an optional ranks below the generic function.

    /// Creates the value of a text.
    public static func value(_ text: String) -> ParameterValue { .string(text) }

    /// Creates the value of a text; ``null`` for `nil`.
    public static func value(_ text: String?) -> ParameterValue { text.map { .string($0) } ?? .null }

    /// Creates the value of an integer.
    public static func value(_ number: Int) -> ParameterValue { .integer(number) }

    /// Creates the value of an integer; ``null`` for `nil`.
    public static func value(_ number: Int?) -> ParameterValue { number.map { .integer($0) } ?? .null }

    /// Creates the value of a Boolean.
    public static func value(_ boolean: Bool) -> ParameterValue { .bool(boolean) }

    /// Creates the value of a Boolean; ``null`` for `nil`.
    public static func value(_ boolean: Bool?) -> ParameterValue { boolean.map { .bool($0) } ?? .null }
}

extension HTTPHeaders {
    /// Returns the fields if all of them are valid.
    /// - Throws: An ``HTTPError`` with the code `.invalidHeader` that names the first invalid field, but not its value.
    public func validated() throws(HTTPError) -> HTTPFields { try checked(nil) }

    /// Returns the fields if all of them are valid.
    /// - Parameters:
    ///   - url: The URL of the request, for the error.
    ///   - base: Fields that come first, unless these fields contain one with the same name.
    package func checked(_ url: HTTPURL?, over base: HTTPFields = HTTPFields()) throws(HTTPError) -> HTTPFields {
        // The error is a large value, which is copied even if it is missing.
        if rejection != nil, let error { throw error.about(nil, url) }
        if base.isEmpty { return fields }
        return HTTPFields(base.filter { !fields.contains($0.name) } + fields)
    }

    /// The error about the first invalid field; `nil` without one.
    package var error: HTTPError? { rejection.map { HTTPError(.invalidHeader, phase: .preparing, message: $0) } }
}

extension RequestOptions {
    /// Returns the options with a total timeout, if one is given; the other timeouts are unchanged.
    package func limited(to total: Duration?) -> RequestOptions {
        guard let total else { return self }
        var options = self
        options.timeouts.total = total
        return options
    }
}
