import Martlet

/// One URL of the command line, with all properties of its transfer.
struct TransferPlan: Sendable {
    /// The index on the command line, from 0.
    let number: Int
    /// The URL as it was given.
    let givenURL: String
    /// The URL as it is fetched.
    let url: HTTPURL
    private(set) var request: HTTPRequest
    private(set) var body: HTTPBody
    var options: RequestOptions
    let destination: TransferOptions.Destination
    let group: TransferOptions

    /// The plans of a group, one for each URL.
    static func plans(
        for options: TransferOptions, from number: Int, caller: CredentialPlan
    ) throws(UsageError) -> [TransferPlan] {
        try check(!options.urls.isEmpty, "no URL was given; try martlet --help")
        try check(options.destinations.count <= options.urls.count, "there are more outputs than URLs")
        try check(options.uploads.count <= options.urls.count, "there are more files than URLs")
        let sendsData = !options.data.isEmpty && !options.putsDataInQuery
        let sources = [sendsData, options.isHead, !options.uploads.isEmpty, !options.form.isEmpty]
        try check(sources.count(where: { $0 }) <= 1, "only one of -d, -F, -I and -T can be given")
        try check(
            !options.usesRemoteHeaderName || !options.includesHeads && !options.isHead,
            "option -J: cannot be used with -i and -I: the head names its file")
        try checkReading(options)
        try checkContinuation(options, sendsData: sendsData)
        try check(
            options.urls.count == 1 || options.comparedTagFile == nil && options.savedTagFile == nil,
            "--etag-compare and --etag-save go with one URL")
        var form: HTTPBody?
        if !options.form.isEmpty {
            form = try FormPart.body(
                of: options.form, quoting: options.formQuoting, boundary: try boundary(options))
        }
        let data = try FormData(options.data).bytes
        let body: HTTPBody? = sendsData ? .bytes(data, contentType: options.dataType) : form
        return try options.urls.indices.map { (index) throws(UsageError) in
            try TransferPlan(index, of: options, number: number + index, data, body, caller)
        }
    }

    /// The boundary of a `Content-Type` of `-H`.
    private static func boundary(_ options: TransferOptions) throws(UsageError) -> String? {
        let type = try HeaderLines(options.headerLines).fields[.contentType].flatMap { MediaType($0) }
        guard type?.type == "multipart", let boundary = type?["boundary"] else { return nil }
        try check(
            HTTPBody.isBoundary(boundary), "option -H: “\(boundary)” cannot be what parts are told apart by")
        return boundary
    }

    /// The rest of a resource is one range of it, is fetched or put, and is appended to a file.
    private static func checkContinuation(_ options: TransferOptions, sendsData: Bool) throws(UsageError) {
        guard options.continuation != nil else { return }
        let others = [
            ("-r", options.range != nil), ("-d", sendsData), ("-F", !options.form.isEmpty),
            ("-J", options.usesRemoteHeaderName), ("--sse", options.reading == .events),
        ]
        for (name, isGiven) in others where isGiven {
            throw UsageError("option -C: cannot be used with \(name)")
        }
    }

    /// Requests the resource from a byte on, unless the request has a range already.
    mutating func goOn(at offset: UInt64) {
        guard request.headerFields[.range] == nil else { return }
        request.headerFields[.range] = "bytes=\(offset)-"
    }

    /// Heads belong to one exchange; a stream of events has any number of them.
    private static func checkReading(_ options: TransferOptions) throws(UsageError) {
        guard options.reading == .events else { return }
        if options.speedLimit > 0, options.speedTime > .zero {
            throw UsageError("option --sse: cannot be used with -Y and -y: a stream of events may rest")
        }
        if options.includesHeads || options.isHead || options.headsFile != nil || options.usesRemoteHeaderName
        {
            throw UsageError("option --sse: cannot be used with -i, -I, -D and -J")
        }
    }

    /// - Parameters:
    ///   - data: The data of all requests, for the query with `-G`.
    ///   - given: The data or form that is the body of all requests.
    private init(
        _ index: Int, of group: TransferOptions, number: Int, _ data: [UInt8], _ given: HTTPBody?,
        _ caller: CredentialPlan
    ) throws(UsageError) {
        self.number = number
        self.group = group
        givenURL = group.urls[index]
        destination =
            group.destinations.indices.contains(index)
            ? group.destinations[index] : group.usesRemoteNames ? .remoteName : .named("-")
        let upload = group.uploads.indices.contains(index) ? group.uploads[index] : nil
        url = try TransferPlan.address(givenURL, group, upload: upload, data)
        var lines = try HeaderLines(group.headerLines)
        body = given ?? .none
        var method = given != nil ? "POST" : group.isHead ? "HEAD" : "GET"
        if group.hasJSON {
            // With -G as well, where no body has this type.
            lines.setDefault(.accept, group.dataType)
            if group.putsDataInQuery { lines.setDefault(.contentType, group.dataType) }
        }
        if given == nil, let upload {
            method = "PUT"
            if upload == "-" || upload == "." {
                body = .once(FileInput(nil), contentType: nil)
                if group.continuation != nil { throw UsageError("option -C: cannot be used with -T -") }
            } else if let continuation = group.continuation {
                let rest = try continuation.upload(of: upload)
                body = rest.body
                if let range = rest.contentRange { lines.setDefault(.contentRange, range) }
            } else if FileInput.isStream(upload) {
                body = .once(FileInput(upload), contentType: nil)
            } else {
                body = .file(FilePath(upload), contentType: nil)
            }
        }
        if let text = group.method {
            try check(HTTPRequest.Method(text) != nil, "option -X: “\(text)” is not a method")
            method = text
        }
        if let range = group.range { lines.setDefault(.range, TransferPlan.rangeField(range)) }
        if let condition = group.timeCondition {
            lines.setDefault(condition.relation.field, condition.date.text)
        }
        if let value = try EntityTagFile.compared(group) { lines.append(.ifNoneMatch, value) }
        // The body is written as it comes, in any of these codings.
        if group.isCompressed, group.isRaw { lines.setDefault(.acceptEncoding, ContentCoding.acceptedNames) }
        lines.setDefaults(group)
        options = TransferPlan.requestOptions(group)
        options.omittedFields = lines.omitted
        var fields = lines.fields
        caller.apply(to: &options, &fields, url: url)
        request = HTTPRequest(
            method: HTTPRequest.Method(method) ?? .get, url: url.withoutUserInfo, headerFields: fields)
    }

    static func requestOptions(_ group: TransferOptions) -> RequestOptions {
        var options = RequestOptions(
            timeouts: Timeouts(
                connect: group.connectTimeout ?? .seconds(300), head: nil, idle: nil,
                total: group.totalTimeout), bodyLimit: group.sizeLimit.map { ByteCount($0) },
            decompresses: group.isCompressed && !group.isRaw)
        options.version = group.version
        options.returnsRawBody = group.isRaw
        if group.ignoresContentLength { options.ignoresContentLength = true }
        options.redirects = group.redirects.followsRedirects ? group.redirects : .doNotFollow
        options.usesCookies = CookiePlan.isActive(group)
        if let rate = group.rateLimit {
            options.bandwidth = BandwidthLimit(upload: .bytesPerSecond(rate), download: .bytesPerSecond(rate))
        }
        return options
    }

    /// A range as curl takes it; a single number is the first byte.
    private static func rangeField(_ range: String) -> String {
        let isNumber = !range.isEmpty && range.utf8.allSatisfy(ByteClass.isDigit)
        return "bytes=\(range)\(isNumber ? "-" : "")"
    }

    /// The URL, with a missing scheme added, the name of an uploaded file after a directory, and the data of `-G`.
    private static func address(
        _ given: String, _ options: TransferOptions, upload: String?, _ data: [UInt8]
    ) throws(UsageError) -> HTTPURL {
        let text = try CommandLineURL.completed(given, disablesGlobbing: options.disablesGlobbing)
        var url = try CommandLineURL.parsed(text, pathAsIs: options.keepsPath)
        if let upload, upload != "-", upload != ".", url.path.hasSuffix("/"),
            let name = upload.split(separator: "/").last
        {
            let item = FormEncoding.encoded(
                [QueryItem(name: String(name), value: nil)], space: .percentEncoded)
            // Not after the given text, which may end with the host.
            let whole = url.absoluteString.prefix { $0 != "#" }
            let pathEnd = whole.firstIndex(of: "?") ?? whole.endIndex
            url = try CommandLineURL.parsed(
                "\(whole[..<pathEnd])\(item)\(whole[pathEnd...])", pathAsIs: options.keepsPath)
        }
        guard options.putsDataInQuery, !data.isEmpty else { return url }
        let whole = url.absoluteString.prefix { $0 != "#" }
        let separator = url.query == nil ? "?" : url.query == "" ? "" : "&"
        return try CommandLineURL.parsed(
            "\(whole)\(separator)\(String(decoding: data, as: UTF8.self))", pathAsIs: options.keepsPath)
    }
}

/// A URL on a command line.
enum CommandLineURL {
    /// The text, with `http://` added if it has no scheme.
    static func completed(_ given: String, disablesGlobbing: Bool) throws(UsageError) -> String {
        let text = disablesGlobbing ? given : try withoutPatterns(given)
        return hasScheme(text) ? text : "http://\(text)"
    }

    /// Whether a text has a scheme. `http:/x` and `https:` have one, and are not a host of that name, unless a port follows;
    /// text after a path or a query is no scheme.
    private static func hasScheme(_ text: String) -> Bool {
        let name = text.utf8.prefix { !":/?#@[".utf8.contains($0) }
        if !name.isEmpty, text.utf8[name.endIndex...].starts(with: "://".utf8) { return true }
        guard ["http", "https"].contains(Substring(name).lowercased()) else { return false }
        let rest = text.utf8[name.endIndex...]
        return rest.first == UInt8(ascii: ":")
            && !rest.dropFirst().prefix(1).contains(where: ByteClass.isDigit)
    }

    static func parsed(_ text: String, pathAsIs: Bool = false) throws(UsageError) -> HTTPURL {
        do throws(HTTPURL.ParseError) { return try HTTPURL(text, pathAsIs: pathAsIs) } catch {
            throw UsageError(error.description, status: ExitStatus(error))
        }
    }

    /// The URL, if it is not a pattern: curl makes several of one with `{a,b}` or `[1-9]` in it. An empty `[]` is no pattern,
    /// nor is a bracket after a backslash, which is removed.
    private static func withoutPatterns(_ text: String) throws(UsageError) -> String {
        guard text.utf8.contains(where: { [0x5B, 0x5D, 0x7B, 0x7D].contains($0) }) else { return text }
        let host = text.split(separator: "://", maxSplits: 1).last ?? ""
        let isAddress = host.hasPrefix("[") || host.contains("@[")
        var rest = (isAddress ? host.drop { $0 != "]" }.dropFirst() : host[...]).unicodeScalars
        var literal = String.UnicodeScalarView(text[..<rest.startIndex].unicodeScalars)
        while let scalar = rest.popFirst() {
            if scalar == "\\", let next = rest.first, "{}[]".unicodeScalars.contains(next) {
                literal.append(next)
                rest.removeFirst()
            } else if scalar == "[", rest.first == "]" {
                literal.append(contentsOf: "[]".unicodeScalars)
                rest.removeFirst()
            } else if "{}[]".unicodeScalars.contains(scalar) {
                throw UsageError(
                    "URL patterns with { } [ ] are not supported; -g takes them as they are",
                    status: .malformedURL)
            } else {
                literal.append(scalar)
            }
        }
        return String(literal)
    }
}

/// The name of the file of `-O`: the last part of the URL's path, as it is written there.
enum RemoteName {
    /// The name that is shown before the response gives one.
    static let placeholder = "download"

    /// The name; never a directory, and never a path out of one.
    static func name(for url: HTTPURL) throws(UsageError) -> String {
        let last = url.path.split(separator: "/", omittingEmptySubsequences: false).last ?? ""
        try check(
            !last.isEmpty && last != "." && last != ".." && !last.utf8.contains(0),
            "option -O: the URL's path names no file", status: .writeFailed)
        return String(last)
    }
}
