import FoundationEssentials
import MartletTransport
import SystemPackage

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
            return DirectoryListing(path: RequestTarget.decoded(request.path[...]), entries: entries).response
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
            let name = RequestTarget.decoded(part)
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
