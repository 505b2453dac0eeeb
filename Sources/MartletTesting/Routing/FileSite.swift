import FoundationEssentials
import MartletTransport
import MartletURL
public import SystemPackage

/// The files of a directory, as an origin serves them: with ranges, validators, types by extension, an index
/// for directories, and no way out of the directory, be it by `..` or by a symbolic link.
struct FileSite: Sendable {
    /// What a path in the directory is.
    private enum Place: Sendable {
        case file(FilePath, length: UInt64, modified: Date)
        case directory([String])
        case nothing
    }

    private let root: String
    private let validators: FileValidators

    init(root: FilePath, validators: FileValidators) {
        self.root = root.string
        self.validators = validators
    }

    /// Answers a request for a path below the directory, percent-encoded as sent.
    func response(to request: OriginRequest, path: String) async -> OriginResponse {
        guard request.method == "GET" || request.method == "HEAD" else {
            return OriginResponse.text("files are read with GET and HEAD\n", status: 405).with {
                $0.fields["Allow"] = "GET, HEAD"
            }
        }
        guard let names = FileSite.names(in: path) else {
            return .text("a path must stay inside the directory\n", status: 400)
        }
        let root = root
        let place = await BlockingWorkers.shared.run { FileSite.place(of: names, in: root) }
        switch place {
        case .nothing: return .text("there is no such file\n", status: 404)
        case .directory(let entries):
            guard request.path.hasSuffix("/") else {
                return .redirect(to: request.path + "/" + (request.query.map { "?\($0)" } ?? ""), status: 301)
            }
            return DirectoryListing(path: PercentEncoding.decoded(request.path), entries: entries).response
        case .file(let path, let length, let modified):
            return content(path, length: length, modified: modified).response(to: request)
        }
    }

    private func content(_ path: FilePath, length: UInt64, modified: Date) -> OriginContent {
        let body = OriginResponseBody.file(path, range: 0..<length)
        var content = OriginContent(body: body, type: MediaType.ofFile(path.string))
        // Microseconds: a file rewritten within one second is another version.
        let version = UInt64(max(0, modified.timeIntervalSince1970) * 1_000_000)
        let tag = "\"\(String(length, radix: 16))-\(String(version, radix: 16))\""
        switch validators {
        case .strong: content.entityTag = tag
        case .weak: content.entityTag = "W/" + tag
        case .lastModifiedOnly, .none: break
        }
        if validators != .none { content.lastModified = modified }
        return content
    }

    /// The names in a path, decoded; `nil` for one that no file below a directory can have.
    static func names(in path: String) -> [String]? {
        var names: [String] = []
        for part in path.split(separator: "/") {
            let name = PercentEncoding.decoded(String(part))
            if name == "." { continue }
            guard name != "..", !name.utf8.contains(0), !name.utf8.contains(UInt8(ascii: "/")) else {
                return nil
            }
            names.append(name)
        }
        return names
    }

    /// Looks a path up; blocks.
    private static func place(of names: [String], in root: String) -> Place {
        let top = URL(filePath: root).resolvingSymlinksInPath().path
        let asked = ([root] + names).joined(separator: "/")
        let real = URL(filePath: asked).resolvingSymlinksInPath().path
        let prefix = top.hasSuffix("/") ? top : top + "/"
        guard real == top || real.hasPrefix(prefix) else { return .nothing }
        if let file = file(at: real) { return file }
        if let index = file(at: real + "/index.html") { return index }
        do {
            let entries = try FileManager.default.contentsOfDirectory(atPath: real)
            return .directory(entries.sorted().map { isDirectory(real + "/" + $0) ? $0 + "/" : $0 })
        } catch {
            return .nothing
        }
    }

    private static func file(at path: String) -> Place? {
        // A link in the place of an index could lead anywhere, so links are not followed here.
        guard let status = try? FilePath(path).stat(followTargetSymlink: false), status.type == .regular,
            let modified = try? FileManager.default.attributesOfItem(atPath: path)[.modificationDate] as? Date
        else { return nil }
        return .file(FilePath(path), length: UInt64(max(0, status.size)), modified: modified)
    }

    private static func isDirectory(_ path: String) -> Bool {
        (try? FilePath(path).stat().type) == .directory
    }
}

/// An open file of the test origin; every call runs on a worker thread, since file systems block.
struct ServedFile: Sendable {
    private let descriptor: FileDescriptor
    private let path: FilePath

    /// Opens a file for reading.
    static func open(_ path: FilePath) async throws(OriginError) -> ServedFile {
        let result = await BlockingWorkers.shared.run { () -> Result<FileDescriptor, OriginError> in
            do {
                return .success(try FileDescriptor.open(path, .readOnly, options: .closeOnExec))
            } catch {
                return .failure(.file("\(path): \(error)"))
            }
        }
        return ServedFile(descriptor: try result.get(), path: path)
    }

    /// Reads at an offset.
    /// - Returns: Fewer bytes than asked for near the end, none at it.
    func read(at offset: UInt64, count: Int) async throws(OriginError) -> [UInt8] {
        let (descriptor, path) = (descriptor, path)
        let result = await BlockingWorkers.shared.run { () -> Result<[UInt8], OriginError> in
            do {
                let bytes = try unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
                    initialized = try unsafe descriptor.read(
                        fromAbsoluteOffset: Int64(clamping: offset),
                        into: UnsafeMutableRawBufferPointer(buffer))
                }
                return .success(bytes)
            } catch {
                return .failure(.file("\(path): \(error)"))
            }
        }
        return try result.get()
    }

    /// Closes the file.
    func close() async {
        let descriptor = descriptor
        await BlockingWorkers.shared.run {
            // A descriptor opened for reading has nothing to lose at its close.
            try? descriptor.close()
        }
    }
}

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
        var output: [UInt8] = []
        for byte in name.utf8 {
            if reserved.contains(byte) {
                PercentEncoding.append(escaped: byte, to: &output)
            } else {
                output.append(byte)
            }
        }
        return String(decoding: output, as: UTF8.self)
    }

    private static let reserved = PercentEncoding.EncodeSet("!\"#$%&'()*+,:;<=>?@[\\]^`{|} ")
}

/// Media types of files by their extensions.
enum MediaType {
    private static let types: [String: String] = [
        "html": "text/html; charset=utf-8", "htm": "text/html; charset=utf-8",
        "txt": "text/plain; charset=utf-8", "md": "text/markdown; charset=utf-8",
        "css": "text/css; charset=utf-8", "csv": "text/csv; charset=utf-8",
        "js": "text/javascript; charset=utf-8", "json": "application/json", "xml": "application/xml",
        "pdf": "application/pdf", "zip": "application/zip", "gz": "application/gzip",
        "tar": "application/x-tar", "wasm": "application/wasm", "png": "image/png", "jpg": "image/jpeg",
        "jpeg": "image/jpeg", "gif": "image/gif", "svg": "image/svg+xml", "webp": "image/webp",
        "ico": "image/x-icon", "mp3": "audio/mpeg", "wav": "audio/wav", "mp4": "video/mp4",
        "webm": "video/webm", "woff": "font/woff", "woff2": "font/woff2",
    ]

    /// The type of a file; `application/octet-stream` where its extension is unknown.
    static func ofFile(_ path: String) -> String {
        let name = path.split(separator: "/").last ?? ""
        guard let dot = name.lastIndex(of: "."), dot > name.startIndex else {
            return "application/octet-stream"
        }
        return types[name[name.index(after: dot)...].lowercased()] ?? "application/octet-stream"
    }
}

extension OriginHandler {
    /// The files of a directory: streamed, with ranges, validators, types by extension, and an index where a
    /// directory has no `index.html`. Paths that lead out of the directory are refused.
    ///
    /// In a router it serves what the parameter `path` of its pattern stands for, as in `/files/{path...}`;
    /// elsewhere the request's path.
    /// - Parameters:
    ///   - directory: The directory; it may be missing or change at any time.
    ///   - validators: What is told of a file's version.
    public static func files(in directory: FilePath, validators: FileValidators = .strong) -> OriginHandler {
        let site = FileSite(root: directory, validators: validators)
        return OriginHandler { request in
            await site.response(to: request, path: request.parameters["path"] ?? request.path)
        }
    }
}
