/// The page that lists a directory without an index of its own.
struct DirectoryListing {
    let path: String
    /// The names in it; those of directories end in a slash.
    let entries: [String]

    /// The page.
    var response: OriginResponse {
        let lines = entries.map { name in
            "<li><a href=\"./\(DirectoryListing.encoded(name))\">\(DirectoryListing.escaped(name))</a></li>\n"
        }
        let title = DirectoryListing.escaped(path)
        return OriginResponse(
            fields: ["Content-Type": "text/html; charset=utf-8"],
            body: .text(
                "<!doctype html>\n<title>\(title)</title>\n<h1>\(title)</h1>\n<ul>\n"
                    + lines.joined() + "</ul>\n"))
    }

    /// Text as HTML shows it.
    static func escaped(_ text: String) -> String {
        var result = ""
        for character in text {
            switch character {
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "&": result += "&amp;"
            case "\"": result += "&quot;"
            default: result.append(character)
            }
        }
        return result
    }

    /// A name as a URL's path has it (RFC 3986 §3.3); slashes stay.
    static func encoded(_ name: String) -> String {
        let plain = Set("-._~/".utf8)
        var result = ""
        for byte in name.utf8 {
            let isAlphanumeric =
                (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
            if isAlphanumeric || plain.contains(byte) {
                result.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                result += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
        return result
    }
}
