import MartletStorage
import MartletTransport
public import SystemPackage

/// What files' names say about their types, as a `mime.types` file lists it: a type, and the suffixes of its files.
///
/// Where the file does not name a suffix, a table of Martlet's own has the common ones.
public struct MediaTypeTable: Sendable {
    /// Where the types come from.
    private enum Source: Sendable {
        /// The machine's file, read when it is first needed.
        case system
        /// Types by suffix.
        case types([String: String])
    }

    /// Longer suffixes are none, in bytes.
    private static let suffixLimit = 64
    /// Larger files are no tables, in bytes: Debian's has 74 KB.
    private static let fileLimit: UInt64 = 4 << 20
    /// Where the machine's table is: Debian's package `media-types` puts it there.
    private static let systemPath = "/etc/mime.types"

    /// The machine's types, read by whoever asks first; the others wait for it.
    private static let systemTypes = (try? read(systemPath)) ?? [:]

    private let source: Source

    private init(_ source: Source) {
        self.source = source
    }

    /// The machine's table, `/etc/mime.types`; where there is none, ``builtIn``.
    ///
    /// It is read once in a process, when it is first asked for a type, which takes a few milliseconds. ``prepare()`` has
    /// that done on a thread of its own.
    public static let system = MediaTypeTable(.system)

    /// The types that Martlet knows itself.
    public static let builtIn = MediaTypeTable(.types([:]))

    /// The table of a `mime.types` file, read on a thread of its own.
    ///
    /// Lines that are none, and types that are none, are skipped. Of two types with one suffix the last counts.
    /// - Throws: A ``StorageError``: the file cannot be read, or has more than 4 MiB.
    public init(contentsOf path: FilePath) async throws(StorageError) {
        let name = path.string
        source = .types(
            try await BlockingWorkers.shared.run { () throws(StorageError) in try MediaTypeTable.read(name) })
    }

    /// The table of a file's content.
    package init(parsing bytes: [UInt8]) {
        source = .types(MediaTypeTable.parse(bytes))
    }

    /// Reads the machine's table on a thread of its own, if nobody has yet.
    public static func prepare() async {
        await BlockingWorkers.shared.run { _ = systemTypes }
    }

    /// The type by what follows the last dot of a name, in any case; `nil` where that says nothing.
    public func contentType(ofFile name: String) -> String? {
        let bytes = Array(name.utf8.suffix(MediaTypeTable.suffixLimit + 1))
        guard let dot = bytes.lastIndex(of: UInt8(ascii: ".")) else { return nil }
        let suffix = String(decoding: bytes[(dot + 1)...], as: UTF8.self).lowercased()
        let types =
            switch source {
            case .system: MediaTypeTable.systemTypes
            case .types(let types): types
            }
        return types[suffix] ?? BuiltInMediaTypes.types[suffix]
    }

    /// Reads a file; blocks.
    private static func read(_ path: String) throws(StorageError) -> [String: String] {
        let file = try FileReader(path: path)
        guard file.byteCount <= fileLimit else {
            throw StorageError(operation: "read", path: path, code: Errno.fileTooLarge.rawValue)
        }
        return parse(try file.read(at: 0, limit: Int(file.byteCount)))
    }

    /// The types of a file's content, by suffix. Takes time linear in it.
    private static func parse(_ bytes: [UInt8]) -> [String: String] {
        var types: [String: String] = [:]
        for line in bytes.split(whereSeparator: { $0 == 0x0A || $0 == 0x0D }) {
            let content = line.prefix { $0 != UInt8(ascii: "#") }
            let words = content.split { $0 == 0x20 || $0 == 0x09 }
            guard words.count > 1 else { continue }
            let type = String(decoding: words[0], as: UTF8.self)
            // A parameter would end up in the head of a part: a table has none.
            guard let parsed = MediaType(type), parsed.parameters.isEmpty, parsed.essence == type.lowercased()
            else { continue }
            for word in words.dropFirst() where word.count <= suffixLimit {
                types[String(decoding: word, as: UTF8.self).lowercased()] = parsed.essence
            }
        }
        return types
    }
}

/// The types of common files, for machines that have no table of their own, or a shorter one.
enum BuiltInMediaTypes {
    /// Types by what follows the last dot of a name, in lower case.
    static let types: [String: String] = [
        "aac": "audio/aac", "avif": "image/avif", "bin": "application/octet-stream", "bmp": "image/bmp",
        "bz2": "application/x-bzip2", "css": "text/css", "csv": "text/csv",
        "doc": "application/msword",
        "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "epub": "application/epub+zip", "flac": "audio/flac", "gif": "image/gif", "gz": "application/gzip",
        "heic": "image/heic", "htm": "text/html", "html": "text/html", "ico": "image/vnd.microsoft.icon",
        "ics": "text/calendar", "jpeg": "image/jpeg", "jpg": "image/jpeg", "js": "text/javascript",
        "json": "application/json", "jsonl": "application/jsonl", "m4a": "audio/mp4", "md": "text/markdown",
        "mkv": "video/matroska", "mov": "video/quicktime", "mp3": "audio/mpeg", "mp4": "video/mp4",
        "mpeg": "video/mpeg", "odt": "application/vnd.oasis.opendocument.text", "oga": "audio/ogg",
        "ogg": "audio/ogg", "ogv": "video/ogg", "opus": "audio/ogg", "otf": "font/otf",
        "pdf": "application/pdf", "png": "image/png",
        "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "rtf": "application/rtf", "svg": "image/svg+xml", "tar": "application/x-tar", "tif": "image/tiff",
        "tiff": "image/tiff", "ttf": "font/ttf", "txt": "text/plain", "wasm": "application/wasm",
        "wav": "audio/wav", "weba": "audio/webm", "webm": "video/webm", "webp": "image/webp",
        "woff": "font/woff", "woff2": "font/woff2",
        "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "xml": "application/xml", "xz": "application/x-xz", "yaml": "application/yaml",
        "yml": "application/yaml",
        "zip": "application/zip", "zst": "application/zstd",
    ]
}
