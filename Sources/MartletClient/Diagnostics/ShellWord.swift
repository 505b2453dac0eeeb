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
