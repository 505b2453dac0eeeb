import FoundationEssentials
import HTTPTypes
import MartletContent
import MartletTransport
import MartletURL
public import SystemPackage

/// Serves the files of a directory: with ranges, validators, types by extension, and an index for directories. Neither
/// `..` nor a symbolic link leads out of the directory.
struct StaticFileHandler: Sendable {
    private enum Item: Sendable {
        case file(FilePath, length: UInt64, modified: Date)
        /// The names in a directory; those of directories end in a slash.
        case directory([String])
        case nothing
    }

    private let root: String
    private let validators: FileValidators

    init(root: FilePath, validators: FileValidators) { (self.root, self.validators) = (root.string, validators) }

    /// Responds to a request for a path below the directory, percent-encoded as sent.
    func response(to request: OriginRequest, path: String) async -> OriginResponse {
        guard request.method == .get || request.method == .head else {
            return OriginResponse.text("files are read with GET and HEAD\n", status: 405).with {
                $0.headers["Allow"] = "GET, HEAD"
            }
        }
        guard let names = StaticFileHandler.names(in: path) else {
            return .text("a path must stay inside the directory\n", status: 400)
        }
        switch await BlockingThreadPool.shared.run({ [root] in StaticFileHandler.item(at: names, in: root) }) {
        case .nothing: return .text("there is no such file\n", status: 404)
        case .directory(let entries):
            guard request.path.hasSuffix("/") else {
                return .redirect(to: request.path + "/" + request.query.suffix, status: 301)
            }
            let title = StaticFileHandler.escaped(PercentEncoding.decoded(request.path))
            return .page(
                title,
                items: entries.map {
                    "<a href=\"./\(StaticFileHandler.encoded($0))\">\(StaticFileHandler.escaped($0))</a>"
                })
        case .file(let path, let length, let modified):
            return content(path, length: length, modified: modified).response(to: request)
        }
    }

    private func content(_ path: FilePath, length: UInt64, modified: Date) -> OriginContent {
        let body = OriginResponseBody.file(path, range: 0..<length)
        var content = OriginContent(body: body, contentType: StaticFileHandler.contentType(of: path))
        // In microseconds, so that a file rewritten within one second is another version.
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

    /// The decoded names in a path; `nil` for a path that no file below a directory can have.
    private static func names(in path: String) -> [String]? {
        var names: [String] = []
        for part in path.split(separator: "/") {
            let name = PercentEncoding.decoded(String(part))
            if name == "." { continue }
            guard name != "..", !name.utf8.contains(0), !name.utf8.contains(UInt8(ascii: "/")) else { return nil }
            names.append(name)
        }
        return names
    }

    /// Looks up a path; blocks.
    private static func item(at names: [String], in root: String) -> Item {
        let top = URL(filePath: root).resolvingSymlinksInPath().path
        let requested = ([root] + names).joined(separator: "/")
        let real = URL(filePath: requested).resolvingSymlinksInPath().path
        guard real == top || real.hasPrefix(top.hasSuffix("/") ? top : top + "/") else { return .nothing }
        if let file = file(at: real) ?? file(at: real + "/index.html") { return file }
        guard let entries = try? FileManager.default.contentsOfDirectory(atPath: real) else { return .nothing }
        return .directory(
            entries.sorted().map { name in
                let type = try? FilePath("\(real)/\(name)").stat().type
                return type == .directory ? name + "/" : name
            })
    }

    private static func file(at path: String) -> Item? {
        // An index that is a link could lead anywhere, so links are not followed here.
        guard let status = try? FilePath(path).stat(followTargetSymlink: false), status.type == .regular,
            let modified = try? FileManager.default.attributesOfItem(atPath: path)[.modificationDate] as? Date
        else { return nil }
        return .file(FilePath(path), length: UInt64(max(0, status.size)), modified: modified)
    }

    static func escaped(_ text: String) -> String {
        let entities: [Character: String] = ["<": "&lt;", ">": "&gt;", "&": "&amp;", "\"": "&quot;"]
        return text.map { entities[$0] ?? String($0) }.joined()
    }

    /// Percent-encodes a name for a URL's path (RFC 3986 §3.3), except slashes.
    private static func encoded(_ name: String) -> String {
        let reserved = PercentEncoding.EncodeSet("!\"#$%&'()*+,:;<=>?@[\\]^`{|} ")
        var output: [UInt8] = []
        PercentEncoding.append(name, escaping: reserved, to: &output)
        return String(decoding: output, as: UTF8.self)
    }

    /// The Content-Type by the suffix of a file's name. Text types get `charset=utf-8`.
    private static func contentType(of path: FilePath) -> String {
        let type = MediaTypeTable.builtIn.contentType(ofFile: path.lastComponent?.string ?? "")
        return type.map { $0.hasPrefix("text/") ? "\($0); charset=utf-8" : $0 } ?? "application/octet-stream"
    }
}

/// An open file of the test origin; every call runs on a worker thread, since file systems block.
struct ServedFile: Sendable {
    private let descriptor: FileDescriptor
    private let path: FilePath

    static func open(_ path: FilePath) async throws(OriginError) -> ServedFile {
        let descriptor = try await blocking(on: path) {
            try FileDescriptor.open(path, .readOnly, options: .closeOnExec)
        }
        return ServedFile(descriptor: descriptor, path: path)
    }

    /// Reads at an offset.
    /// - Returns: Fewer bytes than requested near the end, empty at the end.
    func read(at offset: UInt64, count: Int) async throws(OriginError) -> [UInt8] {
        try await ServedFile.blocking(on: path) { [descriptor] in
            try unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
                initialized = try unsafe descriptor.read(
                    fromAbsoluteOffset: Int64(clamping: offset), into: UnsafeMutableRawBufferPointer(buffer))
            }
        }
    }

    private static func blocking<Value: Sendable>(on path: FilePath, _ body: @escaping @Sendable () throws -> Value)
        async throws(OriginError) -> Value
    { do { return try await BlockingThreadPool.shared.run(throwing: body) } catch { throw .file("\(path): \(error)") } }

    func close() async {
        await BlockingThreadPool.shared.run { [descriptor] in
            // No data is lost if closing a descriptor that was opened for reading fails.
            try? descriptor.close()
        }
    }
}

extension OriginHandler {
    /// Serves the files of a directory: streamed, with ranges, validators, types by extension, and an index for
    /// directories without `index.html`. Paths that lead out of the directory are rejected.
    ///
    /// The file's path is the value of the placeholder `path`, as in the route `/files/{path...}`. Without one, it is
    /// the path of the request.
    /// - Parameters:
    ///   - directory: The directory; it may be missing or change at any time.
    ///   - validators: The validators of the responses; strong entity tags by default.
    public static func files(in directory: FilePath, validators: FileValidators = .strong) -> OriginHandler {
        let files = StaticFileHandler(root: directory, validators: validators)
        return OriginHandler { request in
            await files.response(to: request, path: request.parameters["path"] ?? request.path)
        }
    }
}
