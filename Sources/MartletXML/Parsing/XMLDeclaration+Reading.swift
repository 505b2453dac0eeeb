extension XMLDeclaration {
    /// Reads what stands between `<?xml` and `?>` (XML 1.0 §2.8); nil when it is malformed.
    init?(reading text: String) {
        var rest = Array(text.utf8)[...]
        guard let version = XMLDeclaration.value(of: "version", &rest), version.hasPrefix("1."),
            version.utf8.count > 2, version.utf8.dropFirst(2).allSatisfy({ (0x30...0x39).contains($0) })
        else { return nil }
        self.init(version: version)
        if let encoding = XMLDeclaration.value(of: "encoding", &rest) {
            guard XMLDeclaration.isEncodingName(encoding) else { return nil }
            self.encoding = encoding
        }
        if let standalone = XMLDeclaration.value(of: "standalone", &rest) {
            guard standalone == "yes" || standalone == "no" else { return nil }
            isStandalone = standalone == "yes"
        }
        guard rest.allSatisfy(XMLDeclaration.isSpace) else { return nil }
    }

    /// Takes `name = "value"` off the front; nil, and nothing is taken, when it is not there.
    private static func value(of name: String, _ text: inout ArraySlice<UInt8>) -> String? {
        // The first follows the space behind the target; the others need one of their own.
        var rest = text.drop(while: isSpace)
        guard name == "version" || rest.startIndex > text.startIndex, rest.starts(with: name.utf8) else {
            return nil
        }
        rest = rest.dropFirst(name.utf8.count).drop(while: isSpace)
        guard rest.popFirst() == 0x3D else { return nil }
        rest = rest.drop(while: isSpace)
        guard let quote = rest.popFirst(), quote == 0x22 || quote == 0x27,
            let end = rest.firstIndex(of: quote)
        else { return nil }
        let value = String(decoding: rest[..<end], as: UTF8.self)
        text = rest[(end + 1)...]
        return value
    }

    private static func isSpace(_ byte: UInt8) -> Bool { XMLCharacter.isSpace(UInt32(byte)) }

    /// A Latin letter, then letters, digits, dots, underscores and hyphens (§4.3.3).
    static func isEncodingName(_ text: String) -> Bool {
        func isLetter(_ byte: UInt8) -> Bool { (0x41...0x5A).contains(byte & 0xDF) && byte < 0x80 }
        guard let first = text.utf8.first, isLetter(first) else { return false }
        return text.utf8.allSatisfy {
            isLetter($0) || (0x30...0x39).contains($0) || $0 == 0x2E || $0 == 0x5F || $0 == 0x2D
        }
    }
}
