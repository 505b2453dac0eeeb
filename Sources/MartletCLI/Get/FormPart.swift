import FoundationEssentials
import Martlet

/// A part of a form of `-F`: `name=text`, `name=@file` or `name=<file`, followed by `;type=…` and `;filename=…`.
struct FormPart: Hashable, Sendable {
    private let text: String
    /// Whether `@`, `<` and `;` have no special meaning: `--form-string`.
    private let isLiteral: Bool

    init(_ text: String) { (self.text, isLiteral) = (text, false) }
    init(literal text: String) { (self.text, isLiteral) = (text, true) }

    private typealias Scalars = Substring.UnicodeScalarView

    private enum Source { case text, file, contents }

    /// The body with all parts. `boundary` is that of a `Content-Type` of `-H`, if any. Blocks to read files and input.
    static func body(of parts: [FormPart], quoting: MultipartQuoting, boundary: String? = nil) throws(UsageError)
        -> HTTPBody
    {
        let additions = try parts.map { (part) throws(UsageError) in try part.addition() }
        return .multipart(quoting: quoting, boundary: boundary) { form in for add in additions { add(&form) } }
    }

    private func makeError(_ reason: String) -> UsageError { UsageError("option -F: “\(text)”: \(reason)") }

    private func addition() throws(UsageError) -> (inout MultipartForm) -> Void {
        guard let mark = text.first("=") else { throw makeError("has no =; write NAME=CONTENT") }
        let name = String(text[..<mark])
        // Scalars, because a separator also counts before a combining character.
        var rest = text.unicodeScalars[mark...].dropFirst()
        if isLiteral {
            let value = String(String.UnicodeScalarView(rest))
            return { $0.field(name, value) }
        }
        var source = Source.text
        switch rest.first {
        case "@": source = .file
        case "<": source = .contents
        case "(": throw makeError("parts within parts are not supported")
        default: break
        }
        if source != .text { rest = rest.dropFirst() }
        let value = FormPart.word(&rest, endsAtComma: source == .file)
        guard rest.first != "," else {
            throw makeError("several files need several -F; quote a name with a comma: \(name)=@\"a,b\"")
        }
        let (type, filename) = try attributes(&rest)
        switch source {
        case .text: return { $0.part(name, .text(value, contentType: type), filename: filename) }
        case .contents:
            let bytes = try InputFile.contents(of: value)
            return { $0.part(name, .bytes(bytes, contentType: type), filename: filename) }
        case .file where value == "-" || FileInput.isStream(value):
            let bytes = try InputFile.contents(of: value)
            let filename = filename ?? FilePath(value).lastComponent?.string
            return { $0.part(name, .bytes(bytes, contentType: type), filename: filename) }
        case .file:
            // As in curl, the type is guessed from `filename=`, then from the name of the file.
            let guess =
                filename.flatMap(MediaTypeTable.system.contentType) ?? MediaTypeTable.system.contentType(ofFile: value)
            return { $0.file(name, at: FilePath(value), filename: filename, contentType: type ?? guess) }
        }
    }

    /// Reads `;type=…;filename=…`, in any order. Another attribute is part of the type that it follows, or is ignored.
    private func attributes(_ rest: inout Scalars) throws(UsageError) -> (type: String?, filename: String?) {
        var type: String?
        var filename: String?
        var isInType = false
        while rest.first == ";" {
            rest = rest.dropFirst()
            let parameter = rest
            let blanks = rest.prefix { $0 == " " || $0 == "\t" }
            rest = rest.dropFirst(blanks.count)
            if rest.starts(with: "type=".unicodeScalars) {
                rest = rest.dropFirst(5)
                type = FormPart.word(&rest)
                guard type?.contains("/") == true else { throw makeError("the type has no /") }
                isInType = true
            } else if rest.starts(with: "filename=".unicodeScalars) {
                rest = rest.dropFirst(9)
                filename = FormPart.word(&rest)
                isInType = false
            } else if ["headers=", "encoder="].contains(where: { rest.starts(with: $0.unicodeScalars) }) {
                throw makeError("“headers=” and “encoder=” are not supported")
            } else {
                _ = FormPart.word(&rest)
                if isInType { type? += ";" + String(parameter[..<rest.startIndex]) }
            }
        }
        guard rest.isEmpty else { throw makeError("“\(String(rest))” is not an attribute") }
        return (type, filename)
    }

    /// Reads the text before the next semicolon, without trailing blanks, or a quoted text with backslash escapes.
    private static func word(_ rest: inout Scalars, endsAtComma: Bool = false) -> String {
        if rest.first == "\"", let quoted = quoted(rest) {
            rest = quoted.rest
            return quoted.word
        }
        let word = rest.prefix { $0 != ";" && !(endsAtComma && $0 == ",") }
        rest = rest[word.endIndex...]
        let end = word.lastIndex { $0 != " " && $0 != "\t" }
        return end.map { String(word[...$0]) } ?? ""
    }

    /// A word in quotes, and the text after it; `nil` if the quotes are not closed or no separator follows.
    private static func quoted(_ text: Scalars) -> (word: String, rest: Scalars)? {
        var word = String.UnicodeScalarView()
        var isEscaped = false
        var index = text.index(after: text.startIndex)
        while index < text.endIndex {
            let character = text[index]
            index = text.index(after: index)
            if isEscaped {
                if character != "\"", character != "\\" { word.append("\\") }
                word.append(character)
                isEscaped = false
            } else if character == "\\" {
                isEscaped = true
            } else if character == "\"" {
                let rest = text[index...].drop { $0 == " " || $0 == "\t" }
                return rest.isEmpty || rest.first == ";" || rest.first == "," ? (String(word), rest) : nil
            } else {
                word.append(character)
            }
        }
        return nil
    }
}

/// The data of `-d` and its variants, joined as by curl.
enum FormData {
    /// Reads and joins the parts. Blocks if they name files.
    static func bytes(of parts: [TransferOptions.DataPart]) throws(UsageError) -> [UInt8] {
        var bytes: [UInt8] = []
        for (index, part) in parts.enumerated() {
            let isJSON = if case .json = part { true } else { false }
            if index > 0, !isJSON { bytes.append(UInt8(ascii: "&")) }
            bytes += try FormData.bytes(of: part)
        }
        return bytes
    }

    private static func bytes(of part: TransferOptions.DataPart) throws(UsageError) -> [UInt8] {
        switch part {
        case .raw(let text): return Array(text.utf8)
        case .binary(let text), .json(let text): return try InputFile.contents(afterAtOf: text) ?? Array(text.utf8)
        case .data(let text):
            // As in curl, without the line breaks and NULs of the file.
            return try InputFile.contents(afterAtOf: text)?.filter { ![0, 10, 13].contains($0) } ?? Array(text.utf8)
        case .encoded(let text): return try encoded(text)
        }
    }

    /// Encodes `text`, `=text`, `name=text`, `@file` or `name@file`; the name is not encoded.
    private static func encoded(_ text: String) throws(UsageError) -> [UInt8] {
        // As in curl, `=` takes precedence over `@`.
        let equals = text.first("=")
        guard let mark = equals ?? text.first("@") else { return escaped(text.utf8) }
        let name = Array(text[..<mark].utf8)
        let rest = text.rest(after: mark)
        let content = equals == nil ? try InputFile.contents(of: rest) : Array(rest.utf8)
        let value = escaped(content)
        return name.isEmpty ? value : name + [UInt8(ascii: "=")] + value
    }

    /// Percent-encodes all but the unreserved characters of RFC 3986 §2.3; a space is a plus sign, as in forms.
    private static func escaped(_ bytes: some Sequence<UInt8>) -> [UInt8] {
        var output: [UInt8] = []
        for byte in bytes {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E: output.append(byte)
            case UInt8(ascii: " "): output.append(UInt8(ascii: "+"))
            default: PercentEncoding.append(escaped: byte, to: &output)
            }
        }
        return output
    }
}
