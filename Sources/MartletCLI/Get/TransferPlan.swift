import FoundationEssentials
import Glibc
import Martlet

/// One URL of the command line, with all properties of its transfer.
struct TransferPlan: Sendable {
    /// The index of the URL on the command line, from 0.
    let number: Int
    let givenURL: String
    let url: HTTPURL
    private(set) var request: HTTPRequest
    private(set) var body: HTTPBody
    var options: RequestOptions
    let destination: TransferOptions.Destination
    let group: TransferOptions

    static func plans(for options: TransferOptions, from number: Int, caller: CredentialPlan) throws(UsageError)
        -> [TransferPlan]
    {
        try check(!options.urls.isEmpty, "no URL was given; try martlet --help")
        try check(
            options.destinations.count <= options.urls.count,
            "more options -o and -O (\(options.destinations.count)) than URLs (\(options.urls.count)): give one for each"
        )
        try check(
            options.uploads.count <= options.urls.count,
            "more options -T (\(options.uploads.count)) than URLs (\(options.urls.count)): give one for each")
        let sendsData = !options.data.isEmpty && !options.putsDataInQuery
        let sources = [sendsData, options.isHead, !options.uploads.isEmpty, !options.form.isEmpty]
        try check(sources.count(where: { $0 }) <= 1, "options -d, -F, -I and -T: give only one of them")
        try check(
            !options.usesRemoteHeaderName || !options.includesHeads && !options.isHead,
            "option -J: cannot be used with -i and -I")
        try checkReading(options)
        try checkContinuation(options, sendsData: sendsData)
        try check(
            options.urls.count == 1 || options.comparedTagFile == nil && options.savedTagFile == nil,
            "options --etag-compare and --etag-save: need exactly one URL")
        var form: HTTPBody?
        if !options.form.isEmpty {
            form = try FormPart.body(of: options.form, quoting: options.formQuoting, boundary: try boundary(options))
        }
        let data = try FormData.bytes(of: options.data)
        let body: HTTPBody? = sendsData ? .bytes(data, contentType: options.dataType) : form
        return try options.urls.indices.map { (index) throws(UsageError) in
            try TransferPlan(index, of: options, number: number + index, data, body, caller)
        }
    }

    private static func boundary(_ options: TransferOptions) throws(UsageError) -> String? {
        let type = try HeaderLines(options.headerLines).fields[.contentType].flatMap { MediaType($0) }
        guard type?.type == "multipart", let boundary = type?["boundary"] else { return nil }
        try check(HTTPBody.isBoundary(boundary), "option -H: “\(boundary)” is not a valid boundary")
        return boundary
    }

    /// Rejects options that cannot be combined with `-C`: it requests or sends one range, and appends to a known file.
    private static func checkContinuation(_ options: TransferOptions, sendsData: Bool) throws(UsageError) {
        guard options.continuation != nil else { return }
        let others = [
            ("-r", options.range != nil), ("-d", sendsData), ("-F", !options.form.isEmpty),
            ("-J", options.usesRemoteHeaderName), ("--sse", options.reading == .events),
        ]
        for (name, isGiven) in others where isGiven { throw UsageError("option -C: cannot be used with \(name)") }
    }

    /// Requests the resource from `offset` to its end, unless the request already has a range.
    mutating func resume(at offset: UInt64) {
        request.headerFields[.range] = request.headerFields[.range] ?? "bytes=\(offset)-"
    }

    /// Rejects options that cannot be combined with `--sse`: they are for one exchange, but a stream may reconnect, and
    /// its heads, times and original bytes are not reported.
    private static func checkReading(_ options: TransferOptions) throws(UsageError) {
        guard options.reading == .events else { return }
        let global = options.global
        let others: [(name: String, isGiven: Bool)] = [
            ("-Y and -y", options.speedLimit > 0 && options.speedTime > .zero), ("-i", options.includesHeads),
            ("-I", options.isHead), ("-D", options.headsFile != nil), ("-J", options.usesRemoteHeaderName),
            ("-w", options.writeOut != nil), ("-R", options.preservesModificationTime), ("-v", global.isVerbose),
            ("--har", global.harFile != nil), ("--timeline", global.showsTimeline),
            ("-z", options.timeCondition != nil), ("--etag-compare", options.comparedTagFile != nil),
            ("--etag-save", options.savedTagFile != nil), ("--cache", options.cacheDirectory != nil),
            ("--raw", options.isRaw), ("--fail-with-body", options.keepsBodyOnFailure),
        ]
        for (name, isGiven) in others where isGiven { throw UsageError("option --sse: cannot be used with \(name)") }
    }

    /// Creates the plan of one URL. `data` is the data for the query of `-G`; `given` is the body that `-d` or `-F`
    /// sets for all URLs of the group.
    private init(
        _ index: Int, of group: TransferOptions, number: Int, _ data: [UInt8], _ given: HTTPBody?,
        _ caller: CredentialPlan
    ) throws(UsageError) {
        (self.number, self.group) = (number, group)
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
            // Also with -G, although there is no body of this type.
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
        if let range = group.range {
            // As in curl, a single number N means `N-`.
            let isNumber = !range.isEmpty && range.utf8.allSatisfy(ByteClass.isDigit)
            lines.setDefault(.range, "bytes=\(range)\(isNumber ? "-" : "")")
        }
        if let condition = group.timeCondition { lines.setDefault(condition.field, condition.date.text) }
        if let tag = try EntityTagFile.compared(group) { lines.append(HTTPField(name: .ifNoneMatch, value: tag)) }
        // With `--raw` the body is written as received, in any of these codings.
        if group.isCompressed, group.isRaw { lines.setDefault(.acceptEncoding, ContentCoding.acceptedNames) }
        lines.setDefaults(group)
        options = TransferPlan.requestOptions(group)
        options.omittedFields = lines.omitted
        var fields = lines.fields
        caller.apply(to: &options, &fields, url: url)
        request = HTTPRequest(method: HTTPRequest.Method(method) ?? .get, url: url.withoutUserInfo, headers: fields)
    }

    static func requestOptions(_ group: TransferOptions) -> RequestOptions {
        var options = RequestOptions(
            timeouts: Timeouts(
                connect: group.connectTimeout ?? .seconds(300), head: nil, idle: nil, total: group.totalTimeout),
            bodyLimit: group.sizeLimit.map { ByteCount($0) }, decompresses: group.isCompressed && !group.isRaw)
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

    /// The URL. A missing scheme, the name of an uploaded file after a final slash, and the data of `-G` are added.
    private static func address(_ given: String, _ options: TransferOptions, upload: String?, _ data: [UInt8])
        throws(UsageError) -> HTTPURL
    {
        let text = try CommandLineURL.completed(given, disablesGlobbing: options.disablesGlobbing)
        var url = try CommandLineURL.parsed(text, pathAsIs: options.keepsPath)
        if let upload, upload != "-", upload != ".", url.path.hasSuffix("/"),
            let name = upload.split(separator: "/").last
        {
            let item = FormEncoding.encoded([QueryItem(name: String(name), value: nil)], space: .percentEncoded)
            // Appended to the parsed URL, because the given text may end with the host.
            let whole = url.absoluteString.prefix { $0 != "#" }
            let pathEnd = whole.firstIndex(of: "?") ?? whole.endIndex
            url = try CommandLineURL.parsed(
                "\(whole[..<pathEnd])\(item)\(whole[pathEnd...])", pathAsIs: options.keepsPath)
        }
        guard options.putsDataInQuery, !data.isEmpty else { return url }
        let whole = url.absoluteString.prefix { $0 != "#" }
        let separator = url.query == nil ? "?" : url.query == "" ? "" : "&"
        return try CommandLineURL.parsed("\(whole)\(separator)\(queryText(data))", pathAsIs: options.keepsPath)
    }

    /// Returns data as ASCII. The parser of URLs encodes the other characters, but a file may contain any bytes.
    private static func queryText(_ data: [UInt8]) -> String {
        var text: [UInt8] = []
        for byte in data {
            if byte < 0x80 { text.append(byte) } else { PercentEncoding.append(escaped: byte, to: &text) }
        }
        return String(decoding: text, as: UTF8.self)
    }
}

enum CommandLineURL {
    /// The text, with `http://` added if it has no scheme.
    static func completed(_ given: String, disablesGlobbing: Bool) throws(UsageError) -> String {
        let text = disablesGlobbing ? given : try withoutPatterns(given)
        return hasScheme(text) ? text : "http://\(text)"
    }

    /// Whether a text has a scheme. `http:/x` and `https:` have one; `http:80` is a host and a port.
    private static func hasScheme(_ text: String) -> Bool {
        let name = text.utf8.prefix { !":/?#@[".utf8.contains($0) }
        if !name.isEmpty, text.utf8[name.endIndex...].starts(with: "://".utf8) { return true }
        guard ["http", "https"].contains(Substring(name).lowercased()) else { return false }
        let rest = text.utf8[name.endIndex...]
        return rest.first == UInt8(ascii: ":") && !rest.dropFirst().prefix(1).contains(where: ByteClass.isDigit)
    }

    /// The range of the user and password in a text that is not necessarily a URL; `nil` without them.
    static func userInfo(of text: String) -> Range<String.Index>? {
        let start = text.firstRange(of: "://")?.upperBound ?? text.startIndex
        return text[start...].prefix { !"/?#".contains($0) }.lastIndex(of: "@").map { start..<$0 }
    }

    static func parsed(_ text: String, pathAsIs: Bool = false) throws(UsageError) -> HTTPURL {
        do throws(HTTPURL.ParseError) { return try HTTPURL(text, pathAsIs: pathAsIs) } catch {
            throw UsageError("“\(HTTPSession.withoutSecrets(text))”: \(error)", status: ExitStatus(error))
        }
    }

    /// Returns the URL with `\[` and `\{` unescaped; `[]` is literal. Throws for curl's patterns `{a,b}` and `[1-9]`.
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
                let shown = HTTPSession.withoutSecrets(text)
                throw UsageError(
                    "“\(shown)”: URL patterns with { } [ ] are not supported; -g allows these characters",
                    status: .malformedURL)
            } else {
                literal.append(scalar)
            }
        }
        return String(literal)
    }
}

/// The file name for `-O`: the last part of the URL's path, still percent-encoded.
enum RemoteName {
    /// The name that is shown before the response proposes one.
    static let placeholder = "download"

    /// The file name. Throws if it would be empty, `.` or `..`, or contain a NUL.
    static func name(for url: HTTPURL) throws(UsageError) -> String {
        let last = url.path.split(separator: "/", omittingEmptySubsequences: false).last ?? ""
        try check(
            !last.isEmpty && last != "." && last != ".." && !last.utf8.contains(0),
            "option -O: the path of \(url.redacted) has no file name; use -o FILE", status: .writeFailed)
        return String(last)
    }
}

enum Continuation: Hashable, Sendable {
    /// An offset in the resource, or in the file that is sent.
    case offset(UInt64)
    /// The end of the file that is written.
    case endOfFile

    /// Reads a number of bytes, or `-`.
    static func read(_ text: String) throws(UsageError) -> Continuation {
        if text == "-" { return .endOfFile }
        guard let offset = Int64(text), offset >= 0 else {
            throw UsageError("“\(text)” is neither a number of bytes nor -")
        }
        return .offset(UInt64(offset))
    }

    /// The offset for output to `path`, or to standard output if that is `nil`. `-` is 0 without a regular file.
    func offset(of path: String?) -> UInt64 {
        switch self {
        case .offset(let offset): offset
        case .endOfFile: path.flatMap(Continuation.size) ?? 0
        }
    }

    /// The body that sends a file from the offset on, and its `Content-Range`. With `-` it is the whole file, because
    /// it is not known how many bytes the server has.
    func upload(of name: String) throws(UsageError) -> (body: HTTPBody, contentRange: String?) {
        let whole = HTTPBody.file(FilePath(name), contentType: nil)
        // The reader of the body handles missing and irregular files.
        guard let size = Continuation.size(of: name), size > 0 else { return (whole, nil) }
        let offset = self.offset(of: nil)
        try check(offset < size, "option -C: “\(name)” has only \(size) bytes", status: .partialBody)
        guard offset > 0 || self == .endOfFile else { return (whole, nil) }
        let range = ContentRange.satisfied(offset..<size, total: size).text
        guard offset > 0 else { return (whole, range) }
        let body = HTTPBody.stream(length: size - offset, contentType: nil) { FileInput(name, at: Int64(offset)) }
        return (body, range)
    }

    /// The size of a regular file in bytes; `nil` for others.
    private static func size(of path: String) -> UInt64? {
        guard let status = FileInput.status(of: path), status.type == S_IFREG else { return nil }
        return UInt64(max(0, status.st_size))
    }
}

/// The meaning of the response to a request for the rest of a resource.
enum ResumeResponse: Hashable, Sendable {
    /// The body is the requested rest.
    case rest
    /// Nothing is left: the file is complete, or the response has no body.
    case complete
    /// The body must not be appended to the file. The value is the reason.
    case rejection(String)

    /// - Parameter offset: The first byte that was requested.
    init(_ head: ResponseHead, at offset: UInt64, _ method: HTTPRequest.Method) {
        let range = head.fields.firstValue(of: "content-range").flatMap { ContentRange(parsing: $0) }
        switch (head.status, range) {
        case (204, _), (304, _): self = .complete
        case _ where method == .head: self = .rest
        case (206, .satisfied(let part, _)) where part.lowerBound == offset: self = .rest
        case (206, _): self = .rejection("the server sent a range that does not start at byte \(offset)")
        case (416, .unsatisfied(offset)): self = .complete
        case (416, .unsatisfied(let total)):
            self = .rejection("the server has only \(total) bytes, and the file has \(offset)")
        case (200, _) where head.fields.firstValue(of: "content-length").flatMap({ UInt64($0) }) == offset:
            self = .complete
        case (200, _): self = .rejection("the server does not support byte ranges")
        default: self = .rejection("the response to the range request has status \(head.status)")
        }
    }

    var isRejection: Bool { if case .rejection = self { true } else { false } }
}
