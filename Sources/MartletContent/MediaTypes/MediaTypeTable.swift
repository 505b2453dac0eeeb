/// A table of media types by file suffix: the types of a `mime.types` file, and built-in types for other suffixes.
public struct MediaTypeTable: Sendable {
    /// The maximum size of a suffix, in bytes.
    private static let suffixLimit = 64

    private let types: @Sendable () -> [String: String]

    /// Creates a table from a function that returns the types by suffix. The function is called for each lookup.
    package init(types: @escaping @Sendable () -> [String: String]) { self.types = types }

    /// The table of the built-in types only.
    public static let builtIn = MediaTypeTable { [:] }

    /// Returns the type for the suffix after the last dot of a name, in any case; `nil` if it is unknown.
    public func contentType(ofFile name: String) -> String? {
        let bytes = Array(name.utf8.suffix(MediaTypeTable.suffixLimit + 1))
        guard let dot = bytes.lastIndex(of: UInt8(ascii: ".")) else { return nil }
        let suffix = String(decoding: bytes[(dot + 1)...], as: UTF8.self).lowercased()
        return types()[suffix] ?? MediaTypeTable.common[suffix]
    }

    /// Parses the content of a `mime.types` file, and returns the types by suffix. It takes linear time.
    package static func parse(_ bytes: [UInt8]) -> [String: String] {
        var types: [String: String] = [:]
        for line in bytes.split(whereSeparator: { $0 == 0x0A || $0 == 0x0D }) {
            let content = line.prefix { $0 != UInt8(ascii: "#") }
            let words = content.split { $0 == 0x20 || $0 == 0x09 }
            guard words.count > 1 else { continue }
            let type = String(decoding: words[0], as: UTF8.self)
            // A type with parameters is skipped: they would be written into the head of a part.
            guard let parsed = MediaType(type), parsed.parameters.isEmpty, parsed.essence == type.lowercased() else {
                continue
            }
            for word in words.dropFirst() where word.count <= suffixLimit {
                types[String(decoding: word, as: UTF8.self).lowercased()] = parsed.essence
            }
        }
        return types
    }

    /// The built-in types by suffix in lower case, for systems without a `mime.types` file, or with a shorter one.
    private static let common = [
        "aac": "audio/aac", "avif": "image/avif", "bin": "application/octet-stream", "bmp": "image/bmp",
        "bz2": "application/x-bzip2", "css": "text/css", "csv": "text/csv", "doc": "application/msword",
        "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "epub": "application/epub+zip", "flac": "audio/flac", "gif": "image/gif", "gz": "application/gzip",
        "heic": "image/heic", "htm": "text/html", "html": "text/html", "ico": "image/vnd.microsoft.icon",
        "ics": "text/calendar", "jpeg": "image/jpeg", "jpg": "image/jpeg", "js": "text/javascript",
        "json": "application/json", "jsonl": "application/jsonl", "m4a": "audio/mp4", "md": "text/markdown",
        "mkv": "video/matroska", "mov": "video/quicktime", "mp3": "audio/mpeg", "mp4": "video/mp4",
        "mpeg": "video/mpeg", "odt": "application/vnd.oasis.opendocument.text", "oga": "audio/ogg", "ogg": "audio/ogg",
        "ogv": "video/ogg", "opus": "audio/ogg", "otf": "font/otf", "pdf": "application/pdf", "png": "image/png",
        "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation", "rtf": "application/rtf",
        "svg": "image/svg+xml", "tar": "application/x-tar", "tif": "image/tiff", "tiff": "image/tiff",
        "ttf": "font/ttf", "txt": "text/plain", "wasm": "application/wasm", "wav": "audio/wav", "weba": "audio/webm",
        "webm": "video/webm", "webp": "image/webp", "woff": "font/woff", "woff2": "font/woff2",
        "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xml": "application/xml",
        "xz": "application/x-xz", "yaml": "application/yaml", "yml": "application/yaml", "zip": "application/zip",
        "zst": "application/zstd",
    ]
}
