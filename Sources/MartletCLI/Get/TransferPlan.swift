import HTTPTypes
import Martlet
import SystemPackage

/// One URL of the command line, with all that its transfer needs.
struct TransferPlan: Sendable {
    /// Its place on the command line, from 0.
    var number: Int
    /// The URL as it was given.
    var givenURL: String
    /// The URL as it is fetched.
    var url: HTTPURL
    var request: HTTPRequest
    var body: HTTPBody
    var options: RequestOptions
    /// Where the body goes.
    var destination: TransferOptions.Destination
    /// The options of its group.
    var group: TransferOptions

    /// The plans of a group, one for each URL.
    static func plans(
        for options: TransferOptions, from number: Int, caller: CallerPlan
    ) throws(UsageError) -> [TransferPlan] {
        guard !options.urls.isEmpty else { throw UsageError("no URL was given; try martlet --help") }
        guard options.destinations.count <= options.urls.count else {
            throw UsageError("there are more outputs than URLs")
        }
        guard options.uploads.count <= options.urls.count else {
            throw UsageError("there are more files than URLs")
        }
        let sendsData = !options.data.isEmpty && !options.putsDataInQuery
        let sources = [sendsData, options.isHead, !options.uploads.isEmpty, !options.form.isEmpty]
        guard sources.count(where: { $0 }) <= 1 else {
            throw UsageError("only one of -d, -F, -I and -T can be given")
        }
        guard !options.heedsProposedNames || !options.includesHeads && !options.isHead else {
            throw UsageError("option -J: cannot be used with -i and -I: the head names its file")
        }
        try checkReading(options)
        try checkContinuation(options, sendsData: sendsData)
        guard options.urls.count == 1 || options.comparedTagFile == nil && options.savedTagFile == nil else {
            throw UsageError("--etag-compare and --etag-save go with one URL")
        }
        let form =
            options.form.isEmpty
            ? nil
            : try FormPart.body(
                of: options.form, quoting: options.formQuoting, boundary: try boundary(options))
        let data = try FormData(options.data)
        var plans: [TransferPlan] = []
        for (index, given) in options.urls.enumerated() {
            let upload = options.uploads.indices.contains(index) ? options.uploads[index] : nil
            var url = try address(given, options, upload: upload)
            if options.putsDataInQuery, !data.bytes.isEmpty {
                url = try adding(data, to: url, given, options)
            }
            let destination =
                options.destinations.indices.contains(index)
                ? options.destinations[index] : options.usesRemoteNames ? .remoteName : .named("-")
            plans.append(
                try TransferPlan(
                    number: number + index, givenURL: given, url: url, upload: upload,
                    data: sendsData ? data.bytes : nil, form: form, destination: destination, group: options,
                    caller: caller))
        }
        return plans
    }

    /// What a `Content-Type` of `-H` says that the parts of a form are told apart by.
    private static func boundary(_ options: TransferOptions) throws(UsageError) -> String? {
        let type = try HeaderLines(options.headerLines).fields[.contentType].flatMap { MediaType($0) }
        guard type?.type == "multipart", let boundary = type?["boundary"] else { return nil }
        guard HTTPBody.isBoundary(boundary) else {
            throw UsageError("option -H: “\(boundary)” cannot be what parts are told apart by")
        }
        return boundary
    }

    /// The rest of a resource is one range of it, is fetched or put, and goes behind what a file has.
    private static func checkContinuation(_ options: TransferOptions, sendsData: Bool) throws(UsageError) {
        guard options.continuation != nil else { return }
        let others = [
            ("-r", options.range != nil), ("-d", sendsData), ("-F", !options.form.isEmpty),
            ("-J", options.heedsProposedNames), ("--sse", options.reading == .events),
        ]
        for (name, isGiven) in others where isGiven {
            throw UsageError("option -C: cannot be used with \(name)")
        }
    }

    /// Goes on at a byte, unless the request has a range of its own.
    mutating func goOn(at offset: UInt64) {
        guard request.headerFields[.range] == nil else { return }
        request.headerFields[.range] = "bytes=\(offset)-"
    }

    /// Heads, and what is made of them, belong to one exchange; a stream of events is of any number.
    private static func checkReading(_ options: TransferOptions) throws(UsageError) {
        guard options.reading == .events else { return }
        if options.speedLimit > 0, options.speedTime > .zero {
            throw UsageError("option --sse: cannot be used with -Y and -y: a stream of events may rest")
        }
        if options.includesHeads || options.isHead || options.headsFile != nil || options.heedsProposedNames {
            throw UsageError("option --sse: cannot be used with -i, -I, -D and -J")
        }
    }

    private init(
        number: Int, givenURL: String, url: HTTPURL, upload: String?, data: [UInt8]?, form: HTTPBody?,
        destination: TransferOptions.Destination, group: TransferOptions, caller: CallerPlan
    ) throws(UsageError) {
        self.number = number
        self.givenURL = givenURL
        self.url = url
        self.destination = destination
        self.group = group
        var lines = try HeaderLines(group.headerLines)
        body = .none
        var method = "GET"
        if group.isHead { method = "HEAD" }
        let type = group.hasJSON ? "application/json" : "application/x-www-form-urlencoded"
        if group.hasJSON {
            // With -G, too, where there is no body that carries its type.
            lines.setDefault(.accept, type)
            if data == nil { lines.setDefault(.contentType, type) }
        }
        if let data {
            method = "POST"
            body = .bytes(data, contentType: type)
        } else if let form {
            method = "POST"
            body = form
        } else if let upload {
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
            guard HTTPRequest.Method(text) != nil else {
                throw UsageError("option -X: “\(text)” is not a method")
            }
            method = text
        }
        if let range = group.range { lines.setDefault(.range, TransferPlan.rangeField(range)) }
        if let condition = group.timeCondition {
            lines.setDefault(condition.relation.field, condition.date.text)
        }
        if let value = try EntityTagFile.compared(group) { lines.append(.ifNoneMatch, value) }
        // What comes is shown as it is, in whichever of these.
        if group.isCompressed, group.isRaw { lines.setDefault(.acceptEncoding, ContentCoding.acceptedNames) }
        lines.setDefaults(group)
        options = TransferPlan.requestOptions(group)
        options.omittedFields = lines.omitted
        var fields = lines.fields
        caller.apply(to: &options, &fields, url: url)
        request = HTTPRequest(
            method: HTTPRequest.Method(method) ?? .get, url: url.withoutUserInfo, headerFields: fields)
    }

    /// What a group says about how its requests are sent.
    static func requestOptions(_ group: TransferOptions) -> RequestOptions {
        var options = RequestOptions(
            timeouts: Timeouts(
                connect: group.connectTimeout ?? .seconds(300), head: nil, idle: nil,
                total: group.totalTimeout), bodyLimit: group.sizeLimit.map { ByteCount($0) },
            decompresses: group.isCompressed && !group.isRaw)
        options.version = group.version
        options.isRaw = group.isRaw
        if group.ignoresContentLength { options.ignoresContentLength = true }
        options.redirects = redirects(group)
        options.usesCookies = CookiePlan.isActive(group)
        if let rate = group.rateLimit {
            options.bandwidth = BandwidthLimit(up: .bytesPerSecond(rate), down: .bytesPerSecond(rate))
        }
        return options
    }

    /// What a group says about redirects.
    static func redirects(_ group: TransferOptions) -> RedirectPolicy {
        guard group.followsRedirects else { return .refuse }
        var policy = RedirectPolicy.follow(limit: group.redirectLimit ?? .max)
        // As curl, which goes where it is sent: what is secret stays behind anyway.
        policy.allowsDowngrade = true
        policy.statusesThatKeepMethod = group.statusesThatKeepMethod
        policy.trustsOtherOrigins = group.trustsOtherOrigins
        policy.schemes = group.redirectSchemes
        return policy
    }

    /// Bytes from, to: what curl takes; a single number means "from there on".
    private static func rangeField(_ range: String) -> String {
        let isNumber = !range.isEmpty && range.utf8.allSatisfy { (48...57).contains($0) }
        return "bytes=\(range)\(isNumber ? "-" : "")"
    }

    /// The URL, with `http://` before it where nothing is, and the file's name behind a folder when one is
    /// sent.
    private static func address(
        _ given: String, _ options: TransferOptions, upload: String?
    ) throws(UsageError) -> HTTPURL {
        let text = try GivenURL.completed(given, takesBracesLiterally: options.takesBracesLiterally)
        let url = try GivenURL.parsed(text, pathAsIs: options.keepsPath)
        guard let upload, upload != "-", upload != ".", url.path.hasSuffix("/"),
            let name = upload.split(separator: "/").last
        else { return url }
        let item = FormEncoding.encoded([QueryItem(name: String(name), value: nil)], space: .percentEncoded)
        // Not behind what was given, which may end with the host.
        let whole = url.absoluteString.prefix { $0 != "#" }
        let pathEnd = whole.firstIndex(of: "?") ?? whole.endIndex
        return try GivenURL.parsed(
            "\(whole[..<pathEnd])\(item)\(whole[pathEnd...])", pathAsIs: options.keepsPath)
    }

    private static func adding(
        _ data: FormData, to url: HTTPURL, _ given: String, _ options: TransferOptions
    ) throws(UsageError) -> HTTPURL {
        let text = url.absoluteString.prefix { $0 != "#" }
        let separator = url.query == nil ? "?" : url.query == "" ? "" : "&"
        return try GivenURL.parsed(
            "\(text)\(separator)\(String(decoding: data.bytes, as: UTF8.self))", pathAsIs: options.keepsPath)
    }
}

/// A URL as it is given on a command line.
enum GivenURL {
    /// The text with `http://` before it where nothing is.
    static func completed(_ given: String, takesBracesLiterally: Bool) throws(UsageError) -> String {
        let text = takesBracesLiterally ? given : try withoutPatterns(given)
        return hasScheme(text) ? text : "http://\(text)"
    }

    /// Whether a scheme is written. `http:/x` and `https:` have one, and are none of a host of that name, unless a port
    /// follows; what stands behind a path or a query is none.
    private static func hasScheme(_ text: String) -> Bool {
        let name = text.utf8.prefix { !":/?#@[".utf8.contains($0) }
        if !name.isEmpty, text.utf8[name.endIndex...].starts(with: "://".utf8) { return true }
        guard ["http", "https"].contains(Substring(name).lowercased()) else { return false }
        let behind = text.utf8[name.endIndex...]
        return behind.first == UInt8(ascii: ":")
            && !behind.dropFirst().prefix(1).contains { (48...57).contains($0) }
    }

    /// The URL.
    static func parsed(_ text: String, pathAsIs: Bool = false) throws(UsageError) -> HTTPURL {
        do throws(HTTPURL.ParseError) {
            return try HTTPURL(text, pathAsIs: pathAsIs)
        } catch {
            let isScheme = error.code == .unsupportedScheme
            throw UsageError(error.description, status: isScheme ? .unsupportedScheme : .malformedURL)
        }
    }

    /// The URL where it is no pattern: curl would make several of one with `{a,b}` or `[1-9]` in it. An empty `[]` is none,
    /// nor is a bracket behind a backslash, which is taken away.
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

/// The name of a file that `-O` writes: the last part of the URL's path, as it stands there.
enum RemoteName {
    /// What stands for a name that is not known before the response.
    static let placeholder = "download"

    /// The name; never a folder, and never a way out of one.
    static func name(for url: HTTPURL) throws(UsageError) -> String {
        let last = url.path.split(separator: "/", omittingEmptySubsequences: false).last ?? ""
        guard !last.isEmpty, last != ".", last != "..", !last.utf8.contains(0) else {
            throw UsageError("option -O: the URL's path names no file", status: .writeFailed)
        }
        return String(last)
    }
}
