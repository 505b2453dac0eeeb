import FoundationEssentials
import Martlet

/// One file of the command line, with all properties of its download.
struct DownloadPlan: Sendable {
    /// The number of the download, from 1.
    var number: Int
    /// The URL without user info.
    let url: HTTPURL
    var options: DownloadOptions
    let target: DownloadTarget
    /// Whether the files of a Metalink document are downloaded, too.
    let followsMetalink: Bool
    /// Whether a server named the URL, which gets no credentials.
    let isAnonymous: Bool
    /// The name of the file, if it is known.
    private let givenName: String?
    /// The name that is shown before the file's name is known.
    var name: String {
        givenName ?? SuggestedFilename.of(contentDisposition: nil, url: url) ?? RemoteName.placeholder
    }
    /// The header fields that a download sets itself.
    private static let ownFields: Set<HTTPField.Name> = [.range, .ifRange, .acceptEncoding]

    /// The plans of a command line: those of its URLs, then those of its lists.
    static func plans(for group: TransferOptions, lists: [DownloadListEntry], caller: CredentialPlan) throws(UsageError)
        -> [DownloadPlan]
    {
        let download = group.download
        var entries: [DownloadListEntry] = []
        var lists = lists
        for given in group.urls {
            if MetalinkList.isFile(given) {
                lists += try MetalinkList.entries(of: try InputFile.contents(of: given), named: given)
                continue
            }
            let text = try CommandLineURL.completed(given, disablesGlobbing: group.disablesGlobbing)
            entries.append(DownloadListEntry(place: "option -H", url: try CommandLineURL.parsed(text)))
        }
        if !group.destinations.isEmpty || download.options.checksum != nil || !download.options.mirrors.isEmpty {
            let option =
                !group.destinations.isEmpty ? "-o" : download.options.checksum != nil ? "--checksum" : "--mirror"
            try check(
                entries.count == 1 && lists.isEmpty && group.destinations.count <= 1,
                "option \(option): needs exactly one URL; for several, write a list (-i) with a line for each")
            if case .named(let name)? = group.destinations.first { entries[0].output = name }
            entries[0].checksum = download.options.checksum
            entries[0].mirrors = download.options.mirrors
        }
        entries += lists
        try check(!entries.isEmpty || download.stateDirectory != nil, "no URL was given; try martlet download --help")
        var plans: [DownloadPlan] = []
        let common = try Common(group)
        for entry in entries {
            // The author of a document must not choose which servers get a user or a token.
            let access = entry.isOfDocument && caller.isOneForAll ? nil : caller
            plans.append(try DownloadPlan(entry, group, common, number: plans.count + 1, access))
        }
        return plans
    }

    /// The values that all plans of a command line share. Created once, because a list may have many thousand entries.
    struct Common: Sendable {
        /// The header fields of entries without their own.
        fileprivate let lines: HeaderLines
        /// The directory of files without a name.
        fileprivate let directory: DownloadTarget

        init(_ group: TransferOptions) throws(UsageError) {
            lines = try DownloadPlan.fields(of: group)
            directory = .directory(FilePath(group.download.directory ?? "."))
        }
    }

    /// Creates the plan of an entry.
    /// - Parameter caller: The credentials; `nil` for a URL that a server named, which gets none.
    init(
        _ entry: DownloadListEntry, _ group: TransferOptions, _ common: Common, number: Int, _ caller: CredentialPlan?
    ) throws(UsageError) {
        let download = group.download
        (self.number, url) = (number, entry.url.withoutUserInfo)
        if let output = entry.output {
            // An absolute path replaces the directory.
            let path = download.directory.map { FilePath($0).pushing(FilePath(output)) } ?? FilePath(output)
            guard let name = path.lastComponent, name.kind == .regular, !output.hasSuffix("/") else {
                throw UsageError("“\(output)” is not the name of a file")
            }
            target = .file(path)
            givenName = name.string
        } else {
            (target, givenName) = (common.directory, nil)
        }
        options = download.options
        (options.checksum, options.mirrors) = (entry.checksum, entry.mirrors)
        options.expectedByteCount = entry.byteCount
        (followsMetalink, isAnonymous) = (download.followsMetalink && caller != nil, caller == nil)
        if let limit = group.sizeLimit { options.byteLimit = ByteCount(limit) }
        let lines = try entry.headers.isEmpty ? common.lines : DownloadPlan.fields(of: group, entry.headers)
        var fields = lines.fields
        options.request.omittedFields = lines.omitted
        if let timeout = group.connectTimeout { options.request.timeouts.connect = timeout }
        options.request.redirects = group.redirects.followsRedirects ? group.redirects : .doNotFollow
        options.request.usesCookies = CookiePlan.isActive(group)
        caller?.apply(to: &options.request, &fields, url: entry.url)
        options.headers = entry.isOfDocument ? HTTPHeaders(fields).withoutSecrets : HTTPHeaders(fields)
    }

    /// Creates the plan of a download that is stored in the directory of `--state`.
    init(_ download: Download, number: Int) {
        (self.number, url, target) = (number, download.url, download.target)
        givenName = download.path?.lastComponent?.string
        (followsMetalink, isAnonymous) = (false, false)
        // The download's own options are stored in the directory.
        options = DownloadOptions()
    }

    /// The header fields of a command line, and of `more` lines of a list.
    static func fields(of group: TransferOptions, _ more: [(place: String, line: String)] = []) throws(UsageError)
        -> HeaderLines
    {
        var lines = try HeaderLines(group.headerLines)
        for (place, line) in more { try lines.add(line, at: place) }
        for name in DownloadPlan.ownFields where lines.fields[name] != nil || lines.omitted.contains(name) {
            let place = more.first { $0.line.lowercased().hasPrefix(name.canonicalName) }?.place
            throw UsageError("\(place ?? "option -H"): downloads set \(name.rawName) themselves")
        }
        lines.setDefaults(group)
        return lines
    }

    /// Creates the directory of the file with its parents, unless `made` has it.
    func makeDirectory(_ made: inout Set<String>) async throws {
        let directory =
            switch target.kind {
            case .directory(let directory): directory.string
            case .file(let path): path.removingLastComponent().string
            }
        guard !directory.isEmpty, !made.contains(directory) else { return }
        do { try await Console.attempt { try FileDescriptor.createDirectories(directory) } } catch {
            throw HTTPError(
                .fileFailed, phase: .preparing, message: "cannot create the directory “\(directory)”: \(error)")
        }
        made.insert(directory)
    }
}

struct DownloadCommandOptions: Sendable {
    /// The directory of the files; `nil` for the working directory.
    var directory: String?
    /// Files with lists of URLs; `-` is standard input.
    var lists: [String] = []
    /// Metalink documents; `-` is standard input.
    var metalinks: [String] = []
    /// Whether the files of a downloaded Metalink document are downloaded, too.
    var followsMetalink = true
    /// The options of every download. The checksum and the mirrors apply only to a single URL.
    var options = DownloadOptions()
    var fileLimit = 3
    var fileLimitPerHost = 2
    /// The maximum rate of all files together, in bytes per second; `nil` for no limit.
    var rate: Int?
    /// The directory of a queue that outlives the program.
    var stateDirectory: String?
}

/// Assigns the credentials of a command line to downloads of a queue: to those whose URLs it names, or to all if it
/// names none. Credentials are not written to the queue's directory.
struct DownloadCredentials: Sendable {
    /// The options of the URLs that the command line names once.
    private let named: [String: DownloadOptions]
    /// All URLs that the command line names.
    private let urls: Set<String>
    private let group: TransferOptions
    private let lines: HeaderLines
    private let caller: CredentialPlan

    private static let secrets: [HTTPField.Name] = [.authorization, .proxyAuthorization, .cookie]

    /// Reads the credentials of a command line. `plans` are the downloads that it names.
    init(_ plans: [DownloadPlan], _ group: TransferOptions, _ caller: CredentialPlan) throws(UsageError) {
        let alike = Dictionary(grouping: plans) { $0.url.absoluteForm }
        named = alike.compactMapValues { $0.count == 1 ? $0.first?.options : nil }
        urls = Set(alike.keys)
        (self.group, self.caller) = (group, caller)
        lines = try DownloadPlan.fields(of: group)
    }

    /// Assigns the credentials to a download if they are for it, and returns whether they are. Only then does the
    /// download use the client certificate.
    func grant(_ plan: inout DownloadJob.Plan) -> Bool {
        let url = plan.url.absoluteForm
        if urls.isEmpty {
            grantAll(&plan)
            return true
        }
        guard urls.contains(url) else {
            plan.options.request.usesCookies = false
            return false
        }
        // A URL that is named several times has no common options. Its new downloads have their own already.
        guard let given = named[url] else { return true }
        for name in DownloadCredentials.secrets where plan.options.headers[name] == nil {
            plan.options.headers[name] = given.headers[name]
        }
        if plan.options.request.authentication == nil {
            plan.options.request.authentication = given.request.authentication
        }
        plan.options.request.usesCookies = given.request.usesCookies
        return true
    }

    private func grantAll(_ plan: inout DownloadJob.Plan) {
        for name in Set(lines.fields.map(\.name)) { plan.options.headers[name] = nil }
        for field in lines.fields { plan.options.headers.append(field) }
        plan.options.request.omittedFields.formUnion(lines.omitted)
        plan.options.request.usesCookies = CookiePlan.isActive(group)
        caller.apply(to: &plan.options.request, &plan.options.headers.fields, url: plan.url)
    }
}

/// A list of URLs: one per line, each followed by indented lines with its own options.
///
/// ```
/// # comments and empty lines are ignored
/// https://example.com/disk.img
///   out=disk-1.img
///   checksum=sha256=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
///   mirror=https://mirror.example.com/disk.img
///   header=X-Mirror: 2
/// ```
enum DownloadList {
    /// The entries, in order. Throws the error of the first invalid line, with its number.
    static func entries(of bytes: [UInt8], named name: String, disablesGlobbing: Bool = false) throws(UsageError)
        -> [DownloadListEntry]
    {
        var entries: [DownloadListEntry] = []
        var lines = bytes.split(separator: 10, omittingEmptySubsequences: false)[...]
        if lines.last?.isEmpty == true { lines = lines.dropLast() }
        for (index, line) in lines.enumerated() {
            let place = "\(name == "-" ? "standard input" : name), line \(index + 1)"
            guard let text = String(validating: line.last == 13 ? line.dropLast() : line, as: UTF8.self) else {
                throw UsageError("\(place): is not UTF-8")
            }
            let content = HeaderLines.trimmed(text[...])
            guard let first = content.first, first != "#" else { continue }
            try check(content.utf8.allSatisfy(ByteClass.isFieldValue), "\(place): has a control character")
            if text.first == " " || text.first == "\t" {
                guard var entry = entries.popLast() else {
                    throw UsageError("\(place): options must follow a URL; URLs are not indented")
                }
                try add(content, to: &entry, place)
                entries.append(entry)
            } else {
                let url = try url(content, disablesGlobbing, place)
                entries.append(DownloadListEntry(place: place, url: url))
            }
        }
        return entries
    }

    private static func url(_ text: Substring, _ disablesGlobbing: Bool, _ place: String) throws(UsageError) -> HTTPURL
    {
        try UsageError.at(place) { () throws(UsageError) in
            try check(
                !text.utf8.contains { $0 == 0x20 || $0 == 0x09 }, "a line must have one URL", status: .malformedURL)
            let text = try CommandLineURL.completed(String(text), disablesGlobbing: disablesGlobbing)
            return try CommandLineURL.parsed(text)
        }
    }

    private static func add(_ content: Substring, to entry: inout DownloadListEntry, _ place: String) throws(UsageError)
    {
        let parts = content.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = parts[0]
        try check(parts.count == 2, "\(place): “\(name)” has no =")
        let value = String(parts[1])
        try check(!value.isEmpty, "\(place): “\(name)=” has no value")
        switch name {
        case "out":
            try check(entry.output == nil, "\(place): “out=” is given twice")
            try check(value != "-", "\(place): a download is written to a file")
            entry.output = value
        case "checksum":
            try check(entry.checksum == nil, "\(place): “checksum=” is given twice")
            entry.checksum = try UsageError.at(place) { () throws(UsageError) in try DownloadCommand.checksum(value) }
        case "header": entry.headers.append((place, value))
        case "mirror": entry.mirrors.append(try url(value[...], false, place))
        default: throw UsageError("\(place): “\(name)=” is not one of out=, checksum=, mirror=, header=")
        }
    }
}

/// A URL of a list with its options.
struct DownloadListEntry: Sendable {
    /// The file and the line, such as `list, line 3`, for messages.
    var place: String
    var url: HTTPURL
    var output: String?
    var checksum: Checksum?
    /// `mirror=`: other URLs of the file.
    var mirrors: [HTTPURL] = []
    /// The length of the file, if a Metalink document has it.
    var byteCount: UInt64?
    /// Whether a Metalink document named the URL.
    var isOfDocument = false
    /// `header=`: header lines of its requests, each with its file and line.
    var headers: [(place: String, line: String)] = []
}

/// The running downloads, which can be stopped together.
actor RunningDownloads {
    private enum Phase: Sendable { case open, stopping, stopped }

    private let starter: any DownloadBackend
    private let phase = CurrentValue(Phase.open)
    private var running: [Int: Download] = [:]

    init(_ starter: any DownloadBackend) { self.starter = starter }

    nonisolated var isStopping: Bool { phase.value != .open }

    /// Adds a download. Stops it immediately if all downloads are being stopped.
    func add(_ number: Int, _ download: Download) async {
        running[number] = download
        if isStopping { await starter.stop([download]) }
    }

    func remove(_ number: Int) { running[number] = nil }

    /// Stops all downloads, and returns when they have stopped; no more may begin.
    func stop() async {
        guard !isStopping else { return await untilStopped() }
        phase.update { .stopping }
        await starter.stop(Array(running.values))
        phase.update { .stopped }
    }

    /// Waits until all downloads have stopped, or the task is cancelled.
    nonisolated func untilStopped() async { _ = await phase.next { $0 == .stopped } }
}
