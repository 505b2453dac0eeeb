import MartletContent
public import MartletCore
public import HTTPTypes
import SystemPackage

/// A command line of curl as it is put together.
struct CurlCommand {
    /// Bodies up to this many bytes stand in the command itself: an argument may have no more than 128 KiB on Linux.
    private static let inlineLimit = 64 * 1024

    private let mask: SecretMask
    /// What is piped into curl.
    private var input: String?
    private var words: [String] = []

    init(mask: SecretMask) { self.mask = mask }

    /// The command, quoted.
    var text: String {
        let command = (["curl"] + words.map(ShellWord.quoted)).joined(separator: " ")
        return input.map { "\($0) | \(command)" } ?? command
    }

    /// Adds method, URL and fields.
    mutating func add(_ request: HTTPRequest, hasBody: Bool) {
        switch request.method {
        case .get where !hasBody, .post where hasBody: break
        case .head: words.append("--head")
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
    mutating func add(_ body: HTTPBody, contentType: String?) {
        if case .multipart(let content) = body.storage {
            for part in content.parts { add(part) }
            return
        }
        guard body.isPresent else { return }
        if contentType == nil {
            // curl takes a body without a type for a form.
            words += ["-H", body.contentType.map { "Content-Type: \($0)" } ?? "Content-Type:"]
        }
        switch body.storage {
        case .bytes(let bytes): add(bytes, contentType: contentType ?? body.contentType)
        case .file(let path): words += ["--data-binary", "@\(path.string)"]
        case .stream(nil, _), .once(nil, _):
            words += ["-H", "Transfer-Encoding: chunked", "--data-binary", "@-"]
        case .stream, .once: words += ["--data-binary", "@-"]
        case .none, .failure, .multipart: break
        }
    }

    private mutating func add(_ name: HTTPField.Name, _ value: String) {
        // A colon with nothing behind it would have curl leave the field out.
        words += ["-H", value.isEmpty ? "\(name.rawName);" : "\(name.rawName): \(value)"]
    }

    private mutating func add(_ bytes: [UInt8], contentType: String?) {
        guard bytes.count <= CurlCommand.inlineLimit else {
            words += ["--data-binary", "@-"]
            return
        }
        if let text = ShellWord.text(of: bytes) {
            let isForm = contentType.flatMap { MediaType($0) }?.essence == "application/x-www-form-urlencoded"
            words += ["--data-raw", isForm ? mask.query(text) : text]
        } else {
            input = "printf '%b' \(ShellWord.escaped(bytes))"
            words += ["--data-binary", "@-"]
        }
    }

    private mutating func add(_ part: MultipartForm.Part) {
        let type = part.body.contentType.map { ";type=\($0)" } ?? ""
        let file = part.filename.map { ";filename=\(CurlCommand.formQuoted($0))" } ?? ""
        switch part.body.storage {
        case .file(let path):
            words += ["-F", "\(part.name)=@\(CurlCommand.formQuoted(path.string))\(file)\(type)"]
        case .bytes(let bytes) where part.filename == nil && bytes.count <= CurlCommand.inlineLimit:
            guard let text = ShellWord.text(of: bytes) else { fallthrough }
            let shown = mask.hides(part.name) ? SecretMask.stars : text
            words +=
                type.isEmpty
                ? ["--form-string", "\(part.name)=\(shown)"]
                : ["-F", "\(part.name)=\(CurlCommand.formQuoted(shown))\(type)"]
        default: words += ["-F", "\(part.name)=@-\(file)\(type)"]
        }
    }

    /// A value of `-F` between double quotes, as curl reads them.
    private static func formQuoted(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            if scalar == "\"" || scalar == "\\" { quoted += "\\" }
            quoted.unicodeScalars.append(scalar)
        }
        return quoted + "\""
    }

    /// Where the request goes. What is no URL is shown as near to it as can be.
    private func address(of request: HTTPRequest) -> String {
        do throws(HTTPError) {
            return mask.text(of: try HTTPSession.url(of: request))
        } catch {
            var authority = request.authority ?? ""
            if mask.masksUserInfo, let at = authority.lastIndex(of: "@") {
                authority = SecretMask.stars + authority[at...]
            }
            return "\(request.scheme ?? "http")://\(authority)\(mask.query(request.path ?? "/"))"
        }
    }
}

extension HTTPRequest {
    /// The request as a command line of curl, its secrets masked: what one pastes into a bug report.
    public var curlCommand: String { curlCommand() }

    /// The request as a command line of curl, quoted for a POSIX shell.
    ///
    /// Fields that curl adds of its own (`User-Agent`, `Accept`) are not turned off. A body that is no text is piped in by
    /// `printf`; one that is large, or comes from a stream, is read from standard input, where it has to be given.
    ///
    /// - Parameters:
    ///   - body: The body that goes with it.
    ///   - mask: What is kept out of it; ``SecretMask/none`` gives a command that works, and every secret.
    public func curlCommand(body: HTTPBody = .none, mask: SecretMask = .standard) -> String {
        var command = CurlCommand(mask: mask)
        command.add(self, hasBody: body.isPresent)
        command.add(body, contentType: headerFields[.contentType])
        return command.text
    }
}

/// Words of a command line, quoted so that a POSIX shell takes them as they are (POSIX.1-2017 §2.2).
enum ShellWord {
    /// The text as one word: between single quotes unless nothing in it means anything to a shell.
    static func quoted(_ text: String) -> String {
        if !text.isEmpty, text.utf8.allSatisfy(isPlain) { return text }
        var word = "'"
        for scalar in text.unicodeScalars {
            // A single quote cannot stand between single quotes: they end, it comes escaped, they begin again.
            if scalar == "'" { word += "'\\''" } else { word.unicodeScalars.append(scalar) }
        }
        return word + "'"
    }

    /// Bytes as one word that `printf '%b'` prints: octal numbers for what is not plain ASCII.
    static func escaped(_ bytes: [UInt8]) -> String {
        var word = Array("'".utf8)
        for byte in bytes {
            if (0x20...0x7E).contains(byte), byte != UInt8(ascii: "'"), byte != UInt8(ascii: "\\") {
                word.append(byte)
            } else {
                word += [
                    UInt8(ascii: "\\"), UInt8(ascii: "0"), 0x30 + (byte >> 6), 0x30 + (byte >> 3 & 7),
                    0x30 + (byte & 7),
                ]
            }
        }
        word.append(UInt8(ascii: "'"))
        return String(decoding: word, as: UTF8.self)
    }

    /// Bytes as a text that an argument can hold: UTF-8 without NUL. `nil` when they are none.
    static func text(of bytes: [UInt8]) -> String? {
        bytes.contains(0) ? nil : String(validating: bytes, as: UTF8.self)
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "A")...UInt8(ascii: "Z"):
            true
        default: "@%+:,./-_".utf8.contains(byte)
        }
    }
}
