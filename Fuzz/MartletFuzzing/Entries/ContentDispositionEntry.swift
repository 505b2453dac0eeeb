import MartletContent
import MartletCore

extension FuzzEntry {
    /// Values of Content-Disposition, and the same bytes as a file name that a server proposes.
    ///
    /// A suggested name is one visible component without control characters and with at most 255 bytes, and sanitizing
    /// it again does not change it. Any text that is written as an extended value is read back.
    static let contentDisposition = FuzzEntry("content-disposition") { (bytes) throws(FuzzFinding) in
        let text = String(decoding: bytes, as: UTF8.self)
        if let field = ContentDisposition(text) {
            try require(!field.type.isEmpty, "the type is empty")
            if let name = field.suggestedFilename { try checkName(name) }
        }
        if let name = SafeFilename(text)?.text { try checkName(name) }
        let digits = Array("0123456789abcdef")
        let encoded = text.utf8.map { "%\(digits[Int($0 >> 4)])\(digits[Int($0 & 15)])" }.joined()
        let extended = ContentDisposition("attachment; filename=\"x\"; filename*=utf-8'en'\(encoded)")
        try require(
            extended?.extendedFilename == text,
            "\(text) comes back as \(extended?.extendedFilename ?? "none")")
        let quoted = String(
            decoding: text.utf8.flatMap { $0 == 0x22 || $0 == 0x5C ? [0x5C, $0] : [$0] }, as: UTF8.self)
        let plain = ContentDisposition("attachment; filename=\"\(quoted)\"; filename=\"x\"")
        try require(plain?.filename == text, "\(text) comes back as \(plain?.filename ?? "none")")
    }

    private static func checkName(_ name: String) throws(FuzzFinding) {
        try checkComponent(name)
        try require(name.utf8.first != UInt8(ascii: "."), "\(name) is hidden")
        try require(SafeFilename(name)?.text == name, "\(name) becomes \(SafeFilename(name)?.text ?? "none")")
    }

    private static func checkComponent(_ name: String) throws(FuzzFinding) {
        try require(!name.isEmpty, "the name is empty")
        try require(name.utf8.count <= 255, "the name has \(name.utf8.count) bytes")
        try require(
            !name.utf8.contains { $0 == 0x2F || $0 == 0x5C || $0 < 0x20 || $0 == 0x7F },
            "\(name) is no component")
    }
}
