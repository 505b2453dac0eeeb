import MartletContent
import MartletCore
import MartletDiagnostics

extension FuzzEntry {
    /// Bytes as a string of a HAR log.
    ///
    /// The output is always one JSON string in UTF-8 on one line, which a plain reader decodes to the same repaired
    /// text. A body of these bytes is stored as text or in Base64, and never changed.
    static let harStrings = FuzzEntry("har-strings") { (bytes) throws(FuzzFinding) in
        let text = String(decoding: bytes, as: UTF8.self)
        let written = JSONValue.string(text).bytesForPages
        try require(String(validating: written, as: UTF8.self) != nil, "what is written is no UTF-8")
        try require(
            !written.contains { $0 < 0x20 || $0 == 0x7F || $0 == 0x3C }, "a control character or a < is left")
        guard let read = PlainJSONString(written) else { throw FuzzFinding("what is written is no string") }
        try require(read.text.utf8.elementsEqual(text.utf8), "\(read.text) was \(text)")

        let object: JSONValue = [text: [.string(text), true]]
        try require(
            object.bytesForPages
                == Array("{".utf8) + written + Array(":[".utf8) + written + Array(",true]}".utf8),
            "a member is written in another way")

        let shown = HARText(bytes, type: nil, limit: 1 << 20)
        if let text = shown.text, !shown.isBase64 {
            try require(text.utf8.elementsEqual(bytes), "a body is shown as \(text)")
        } else {
            try require(shown.text?.utf8.count == (bytes.count + 2) / 3 * 4, "Base64 is of another length")
        }
        let limit = bytes.count / 2
        let part = HARText(bytes, type: nil, limit: limit)
        try require((part.text?.utf8.count ?? 0) <= max(limit, 4), "more is shown than the limit says")
    }
}

/// A JSON string that is parsed in the simplest way (RFC 8259 §7).
private struct PlainJSONString {
    let text: String

    init?(_ bytes: [UInt8]) {
        guard bytes.count >= 2, bytes.first == 0x22, bytes.last == 0x22 else { return nil }
        var units: [UInt16] = []
        var scalars = String(decoding: bytes.dropFirst().dropLast(), as: UTF8.self).unicodeScalars[...]
        while let scalar = scalars.popFirst() {
            guard scalar != "\"" else { return nil }
            guard scalar == "\\" else {
                units += String(scalar).utf16
                continue
            }
            switch scalars.popFirst() {
            case "\"": units.append(0x22)
            case "\\": units.append(0x5C)
            case "b": units.append(8)
            case "f": units.append(12)
            case "n": units.append(10)
            case "r": units.append(13)
            case "t": units.append(9)
            case "u":
                let digits = String(String.UnicodeScalarView(scalars.prefix(4)))
                guard digits.unicodeScalars.count == 4, let unit = UInt16(digits, radix: 16) else {
                    return nil
                }
                units.append(unit)
                scalars = scalars.dropFirst(4)
            default: return nil
            }
        }
        text = String(decoding: units, as: UTF16.self)
    }
}
