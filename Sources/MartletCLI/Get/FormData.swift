import FoundationEssentials
import Martlet

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
            return text.begins(with: "@")
                ? try InputFile.contents(of: text.rest(behind: text.startIndex)) : Array(text.utf8)
        case .data(let text):
            guard text.begins(with: "@") else { return Array(text.utf8) }
            // As curl: line breaks and NULs of the file are left out.
            return try InputFile.contents(of: text.rest(behind: text.startIndex)).filter {
                $0 != 10 && $0 != 13 && $0 != 0
            }
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
                UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                output.append(byte)
            case UInt8(ascii: " "): output.append(UInt8(ascii: "+"))
            default: output += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return output
    }
}
