public import MartletCore

/// A command line of curl for a request.
struct CurlCommand {
    /// The maximum size of a body in the command itself, in bytes: an argument has at most 128 KiB on Linux.
    private static let inlineLimit = 64 * 1024

    private let mask: SecretRedaction
    /// The command that is piped into curl.
    private var input: String?
    private var words: [String] = []

    init(mask: SecretRedaction) { self.mask = mask }

    /// The command, quoted for a shell.
    var text: String {
        let command = (["curl"] + words.map(CurlCommand.word)).joined(separator: " ")
        return input.map { "\($0) | \(command)" } ?? command
    }

    /// Adds the method, the URL and the fields.
    mutating func add(_ request: HTTPRequest, hasBody: Bool) {
        switch request.method {
        case .get where !hasBody, .post where hasBody: break
        // curl rejects `--head` together with a body.
        case .head where !hasBody: words.append("--head")
        default: words += ["-X", request.method.rawValue]
        }
        let address = address(of: request)
        if address.utf8.contains(where: { "[]{}".utf8.contains($0) }) { words.append("--globoff") }
        if address.contains("/.") { words.append("--path-as-is") }
        words.append(address)
        let cookies = request.headerFields[values: .cookie]
        for field in request.headerFields where field.name != .cookie {
            add(field.name, mask.value(of: field.name, field.value))
        }
        if !cookies.isEmpty { add(.cookie, mask.value(of: .cookie, cookies.joined(separator: "; "))) }
    }

    /// Adds the body, and its content type unless the request has one.
    mutating func add(_ given: HTTPBody, contentType: String?) {
        let body = given.encoded(by: BodyEncoder())
        if case .multipart(let content) = body.storage {
            for part in content.parts { add(part) }
            return
        }
        guard body.isPresent else { return }
        if contentType == nil {
            // curl sends a body without a type as a form.
            words += ["-H", body.contentType.map { "Content-Type: \($0)" } ?? "Content-Type:"]
        }
        switch body.storage {
        case .bytes(let bytes): add(bytes, contentType: contentType ?? body.contentType)
        case .file(let path): words += ["--data-binary", "@\(path.string)"]
        case .stream(nil, _), .once(nil, _): words += ["-H", "Transfer-Encoding: chunked", "--data-binary", "@-"]
        case .stream, .once: words += ["--data-binary", "@-"]
        case .none, .failure, .multipart, .value: break
        }
    }

    private mutating func add(_ name: HTTPField.Name, _ value: String) {
        // With `Name:` curl omits the field; with `Name;` it sends the field with an empty value.
        words += ["-H", value.isEmpty ? "\(name.rawName);" : "\(name.rawName): \(value)"]
    }

    private mutating func add(_ bytes: [UInt8], contentType: String?) {
        guard bytes.count <= CurlCommand.inlineLimit else {
            words += ["--data-binary", "@-"]
            return
        }
        if let text = CurlCommand.text(of: bytes) {
            let isForm = contentType.flatMap { MediaType($0) }?.essence == "application/x-www-form-urlencoded"
            words += ["--data-raw", isForm ? mask.query(text) : text]
        } else {
            input = "printf '%b' \(CurlCommand.escaped(bytes))"
            words += ["--data-binary", "@-"]
        }
    }

    private mutating func add(_ part: MultipartForm.Part) {
        let type = part.body.contentType.map { ";type=\($0)" } ?? ""
        // curl reads quoted values of `-F` like quoted strings.
        let file = part.filename.map { ";filename=\($0.quoted)" } ?? ""
        switch part.body.storage {
        case .file(let path): words += ["-F", "\(part.name)=@\(path.string.quoted)\(file)\(type)"]
        case .bytes(let bytes) where part.filename == nil && bytes.count <= CurlCommand.inlineLimit:
            guard let text = CurlCommand.text(of: bytes) else { fallthrough }
            let shown = mask.hides(part.name) ? SecretRedaction.stars : text
            words +=
                type.isEmpty
                ? ["--form-string", "\(part.name)=\(shown)"] : ["-F", "\(part.name)=\(shown.quoted)\(type)"]
        default: words += ["-F", "\(part.name)=@-\(file)\(type)"]
        }
    }

    /// Returns the masked URL of the request; if it is invalid, a text of its parts.
    private func address(of request: HTTPRequest) -> String {
        if let url = try? HTTPSession.url(of: request) { return mask.text(of: url) }
        var authority = request.authority ?? ""
        if mask.masksUserInfo, let at = authority.lastIndex(of: "@") {
            authority = SecretRedaction.stars + authority[at...]
        }
        return "\(request.scheme ?? "http")://\(authority)\(mask.reference(request.path ?? "/"))"
    }

    /// Returns the text as one word of a shell, in single quotes unless its characters are plain (POSIX.1-2017 §2.2).
    private static func word(_ text: String) -> String {
        let isPlain = text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "A")...UInt8(ascii: "Z"):
                true
            default: "@%+:,./-_".utf8.contains(byte)
            }
        }
        if isPlain, !text.isEmpty { return text }
        // A single quote in quoted text needs three parts: a closing quote, an escaped quote, and an opening quote.
        let parts = text.unicodeScalars.split(separator: "'", omittingEmptySubsequences: false)
        return "'\(parts.map { String($0) }.joined(separator: "'\\''"))'"
    }

    /// Returns bytes as one word for `printf '%b'`, with octal numbers for bytes other than plain ASCII.
    private static func escaped(_ bytes: [UInt8]) -> String {
        let characters = bytes.map { byte in
            if (0x20...0x7E).contains(byte), !"'\\".utf8.contains(byte) { return String(Unicode.Scalar(byte)) }
            let octal = String(byte, radix: 8)
            return "\\0\(String(repeating: "0", count: 3 - octal.count))\(octal)"
        }
        return "'\(characters.joined())'"
    }

    /// Returns bytes as the text of an argument, which is UTF-8 without NUL; `nil` for other bytes.
    private static func text(of bytes: [UInt8]) -> String? {
        bytes.contains(0) ? nil : String(validating: bytes, as: UTF8.self)
    }
}

extension HTTPRequest {
    /// The request as a curl command line with masked secrets, for example for a bug report.
    public var curlCommand: String { curlCommand() }

    /// Returns the request as a curl command line, quoted for a POSIX shell.
    ///
    /// Fields that curl adds itself (`User-Agent`, `Accept`) are not removed. The command sends a compressed body
    /// uncompressed, because curl cannot compress it. A body that is not text is piped in by
    /// `printf`. A body above 64 KiB, or a stream, has to be supplied on standard input.
    /// - Parameter mask: The secrets to mask; ``SecretRedaction/none`` gives a working command with all secrets.
    public func curlCommand(body: HTTPBody = .none, mask: SecretRedaction = .standard) -> String {
        var command = CurlCommand(mask: mask)
        var request = self
        if let compression = body.compression {
            request.headerFields[.contentEncoding] = compression.fieldValue(
                after: headerFields[values: .contentEncoding], isApplied: false)
        }
        command.add(request, hasBody: body.isPresent)
        command.add(body, contentType: headerFields[.contentType])
        return command.text
    }
}
