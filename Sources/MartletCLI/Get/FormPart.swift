import FoundationEssentials
import Martlet
import SystemPackage

/// A part of a form as `-F` writes it: `name=text`, `name=@file` or `name=<file`, with `;type=…` and `;filename=…` behind.
struct FormPart: Hashable, Sendable {
    /// What was given.
    var text: String
    /// Whether `@`, `<` and `;` are characters as any other: `--form-string`.
    var isLiteral: Bool

    private typealias Scalars = Substring.UnicodeScalarView

    /// What a part is made of.
    private enum Source { case text, file, contents }

    /// The form of some parts. Blocks where they are standard input, or files whose contents are fields.
    /// - Parameter boundary: What a `Content-Type` of the caller's says that the parts are told apart by.
    static func body(
        of parts: [FormPart], quoting: MultipartQuoting, boundary: String? = nil
    ) throws(UsageError) -> HTTPBody {
        var additions: [(inout MultipartForm) -> Void] = []
        for part in parts { additions.append(try part.addition()) }
        return .multipart(quoting: quoting, boundary: boundary) { form in for add in additions { add(&form) }
        }
    }

    private func fault(_ reason: String) -> UsageError { UsageError("option -F: “\(text)”: \(reason)") }

    private func addition() throws(UsageError) -> (inout MultipartForm) -> Void {
        guard let mark = text.first("=") else { throw fault("there is no =") }
        let name = String(text[..<mark])
        // By scalars: a mark is one also where a combining character follows it.
        var rest = text.unicodeScalars[mark...].dropFirst()
        if isLiteral {
            let value = String(String.UnicodeScalarView(rest))
            return { $0.field(name, value) }
        }
        var source = Source.text
        switch rest.first {
        case "@": source = .file
        case "<": source = .contents
        case "(": throw fault("parts within parts are not supported")
        default: break
        }
        if source != .text { rest = rest.dropFirst() }
        let value = FormPart.word(&rest, endsAtComma: source == .file)
        guard rest.first != "," else { throw fault("several files in a part are not supported") }
        let (type, filename) = try attributes(&rest)
        switch source {
        case .text: return { $0.part(name, .text(value, contentType: type), filename: filename) }
        case .contents:
            let bytes = try InputFile.contents(of: value)
            return { $0.part(name, .bytes(bytes, contentType: type), filename: filename) }
        case .file where value == "-" || FileInput.isStream(value):
            let bytes = try InputFile.contents(of: value)
            return {
                $0.part(
                    name, .bytes(bytes, contentType: type),
                    filename: filename ?? FilePath(value).lastComponent?.string)
            }
        case .file:
            // As curl: what the server is told it is called, then its name here.
            let guess =
                filename.flatMap(MediaTypeTable.system.contentType)
                ?? MediaTypeTable.system.contentType(ofFile: value)
            return { $0.file(name, at: FilePath(value), filename: filename, contentType: type ?? guess) }
        }
    }

    /// `;type=…;filename=…`, in any order; what belongs to neither is part of the type, or means nothing.
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
                guard type?.contains("/") == true else { throw fault("the type has no /") }
                isInType = true
            } else if rest.starts(with: "filename=".unicodeScalars) {
                rest = rest.dropFirst(9)
                filename = FormPart.word(&rest)
                isInType = false
            } else if ["headers=", "encoder="].contains(where: { rest.starts(with: $0.unicodeScalars) }) {
                throw fault("“headers=” and “encoder=” are not supported")
            } else {
                _ = FormPart.word(&rest)
                if isInType { type? += ";" + String(parameter[..<rest.startIndex]) }
            }
        }
        guard rest.isEmpty else { throw fault("“\(String(rest))” behind a file's name") }
        return (type, filename)
    }

    /// What stands before the next semicolon, blanks at its end left out; or between quotes, with backslashes.
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

    /// A word in quotes, and what is behind it; `nil` when something else than an end is.
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

/// The data of `-d` and its kin, joined as curl joins them.
struct FormData: Sendable {
    /// The bytes.
    private(set) var bytes: [UInt8] = []

    /// Reads and joins the parts. Blocks where they name files.
    init(_ parts: [TransferOptions.DataPart]) throws(UsageError) {
        for (index, part) in parts.enumerated() {
            var isJSON = false
            if case .json = part { isJSON = true }
            if index > 0, !isJSON { bytes.append(UInt8(ascii: "&")) }
            bytes += try FormData.bytes(of: part)
        }
    }

    private static func bytes(of part: TransferOptions.DataPart) throws(UsageError) -> [UInt8] {
        switch part {
        case .raw(let text): return Array(text.utf8)
        case .binary(let text), .json(let text):
            return try InputFile.contents(behindAtOf: text) ?? Array(text.utf8)
        case .data(let text):
            // As curl: line breaks and NULs of the file are left out.
            return try InputFile.contents(behindAtOf: text)?.filter { ![0, 10, 13].contains($0) }
                ?? Array(text.utf8)
        case .encoded(let text): return try encoded(text)
        }
    }

    /// `text`, `=text`, `name=text`, `@file`, `name@file`; the name is taken as it is.
    private static func encoded(_ text: String) throws(UsageError) -> [UInt8] {
        // As curl: where both stand in it, `=` is the one that counts.
        let equals = text.first("=")
        guard let mark = equals ?? text.first("@") else { return escaped(text.utf8) }
        let name = Array(text[..<mark].utf8)
        let rest = text.rest(behind: mark)
        let content = equals == nil ? try InputFile.contents(of: rest) : Array(rest.utf8)
        let value = escaped(content)
        return name.isEmpty ? value : name + [UInt8(ascii: "=")] + value
    }

    /// Everything but the unreserved characters of RFC 3986 §2.3 is percent-encoded; a space is a plus sign,
    /// as in forms.
    private static func escaped(_ bytes: some Sequence<UInt8>) -> [UInt8] {
        let digits = Array("0123456789ABCDEF".utf8)
        var output: [UInt8] = []
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
                UInt8(ascii: "_"), UInt8(ascii: "~"):
                output.append(byte)
            case UInt8(ascii: " "): output.append(UInt8(ascii: "+"))
            default: output += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return output
    }
}
