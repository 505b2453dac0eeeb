import Martlet

/// The name of a file that `-O` writes: the last part of the URL's path, as it stands there.
enum RemoteName {
    /// What stands for a name that is not known before the response.
    static let placeholder = "download"

    /// What `Content-Disposition` proposes where it is not written as RFC 6266 has it, read as curl reads it: without a type, or
    /// with blanks in a name that is not quoted. Made safe.
    static func loosely(_ disposition: String) -> String? {
        for part in parts(of: disposition) {
            let part = HeaderLines.trimmed(part)
            guard part.prefix(9).lowercased() == "filename=" else { continue }
            var name = HeaderLines.trimmed(part.dropFirst(9))
            if name.first == "\"" { name = name.dropFirst().prefix { $0 != "\"" } }
            return SafeFilename(String(name))?.text
        }
        return nil
    }

    /// What semicolons separate, but not those in quotes.
    private static func parts(of disposition: String) -> [Substring] {
        var isQuoted = false
        var isEscaped = false
        return disposition.split { character in
            if isEscaped {
                isEscaped = false
            } else if isQuoted, character == "\\" {
                isEscaped = true
            } else if character == "\"" {
                isQuoted.toggle()
            }
            return character == ";" && !isQuoted
        }
    }

    /// The name; never a folder, and never a way out of one.
    static func name(for url: HTTPURL) throws(UsageError) -> String {
        let last = url.path.split(separator: "/", omittingEmptySubsequences: false).last ?? ""
        guard !last.isEmpty, last != ".", last != "..", !last.utf8.contains(0) else {
            throw UsageError("option -O: the URL's path names no file", status: .writeFailed)
        }
        return String(last)
    }
}
