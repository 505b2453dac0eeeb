import FoundationEssentials
import Martlet

/// One file of the command line, with all properties of its download.
struct DownloadPlan: Sendable {
    /// The number among all, from 1.
    var number: Int
    /// The URL without user info.
    let url: HTTPURL
    var options: DownloadOptions
    let target: DownloadTarget
    /// The name that is shown before the file's name is known.
    let name: String

    /// The header fields that a download sets itself.
    private static let ownFields: Set<HTTPField.Name> = [.range, .ifRange, .acceptEncoding]

    /// The plans of a command line: those of its URLs, then those of its lists.
    static func plans(
        for group: TransferOptions, lists: [DownloadListEntry], caller: CredentialPlan
    ) throws(UsageError) -> [DownloadPlan] {
        let download = group.download
        var entries: [DownloadListEntry] = []
        for given in group.urls {
            let text = try CommandLineURL.completed(given, disablesGlobbing: group.disablesGlobbing)
            entries.append(DownloadListEntry(place: "option -H", url: try CommandLineURL.parsed(text)))
        }
        if !group.destinations.isEmpty || download.checksum != nil {
            let option = group.destinations.isEmpty ? "--checksum" : "-o"
            try check(
                entries.count == 1 && lists.isEmpty && group.destinations.count <= 1,
                "option \(option): goes with one URL; a list (-i) has a line for each")
            if case .named(let name)? = group.destinations.first { entries[0].output = name }
            entries[0].checksum = download.checksum
        }
        entries += lists
        try check(
            !entries.isEmpty || download.stateFolder != nil, "no URL was given; try martlet download --help")
        var plans: [DownloadPlan] = []
        for entry in entries { plans.append(try DownloadPlan(entry, group, number: plans.count + 1, caller)) }
        return plans
    }

    private init(
        _ entry: DownloadListEntry, _ group: TransferOptions, number: Int, _ caller: CredentialPlan
    ) throws(UsageError) {
        let download = group.download
        self.number = number
        url = entry.url.withoutUserInfo
        if let output = entry.output {
            // A path that is absolute replaces the folder.
            let path = download.folder.map { FilePath($0).pushing(FilePath(output)) } ?? FilePath(output)
            guard let name = path.lastComponent, name.kind == .regular, !output.hasSuffix("/") else {
                throw UsageError("“\(output)” names no file")
            }
            target = .file(path)
            self.name = name.string
        } else {
            target = .directory(FilePath(download.folder ?? "."))
            name = SuggestedFilename.of(contentDisposition: nil, url: entry.url) ?? RemoteName.placeholder
        }
        options = DownloadOptions(
            segments: download.segments, checksum: entry.checksum, collision: download.collision,
            resumption: download.resumption, byteLimit: group.sizeLimit.map { ByteCount($0) } ?? .unlimited,
            preservesModificationTime: download.preservesModificationTime)
        if let count = download.retryCount { options.retry.maximumAttempts = count }
        if let delay = download.retryDelay {
            options.retry.initialDelay = delay
            options.retry.maximumDelay = max(delay, options.retry.maximumDelay)
        }
        if let timeout = download.stallTimeout {
            options.stallTimeout = min(max(timeout, .milliseconds(100)), .seconds(86400))
        }
        let lines = try DownloadPlan.fields(of: group, entry.headers)
        var fields = lines.fields
        options.request.omittedFields = lines.omitted
        if let timeout = group.connectTimeout { options.request.timeouts.connect = timeout }
        options.request.redirects = group.redirects.followsRedirects ? group.redirects : .doNotFollow
        options.request.usesCookies = CookiePlan.isActive(group)
        caller.apply(to: &options.request, &fields, url: entry.url)
        options.headers = HTTPHeaders(fields)
    }

    /// A download that was found in a directory.
    init(_ download: Download, number: Int) {
        self.number = number
        url = download.url
        target = download.target
        name =
            download.path?.lastComponent?.string
            ?? SuggestedFilename.of(contentDisposition: nil, url: url) ?? RemoteName.placeholder
        // Its own options are stored with it.
        options = DownloadOptions()
    }

    /// The header fields of a command line, and of lines of a list.
    static func fields(
        of group: TransferOptions, _ more: [(place: String, line: String)] = []
    ) throws(UsageError) -> HeaderLines {
        var lines = try HeaderLines(group.headerLines)
        for (place, line) in more {
            do throws(UsageError) { try lines.add(line) } catch {
                throw UsageError("\(place): \(error.description.dropFirst("option -H: ".count))")
            }
        }
        for name in DownloadPlan.ownFields where lines.fields[name] != nil || lines.omitted.contains(name) {
            let place = more.first { $0.line.lowercased().hasPrefix(name.canonicalName) }?.place
            throw UsageError("\(place ?? "option -H"): a download has a \(name.rawName) of its own")
        }
        lines.setDefaults(group)
        return lines
    }

    /// Creates the directory of the file, and its parents, if they are missing.
    func makeFolder() async throws {
        let folder =
            switch target.place {
            case .directory(let folder): folder.string
            case .file(let path): path.removingLastComponent().string
            }
        guard !folder.isEmpty else { return }
        do {
            try await Console.attempt {
                try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            }
        } catch {
            throw HTTPError(
                .fileFailed, phase: .preparing,
                message: "the directory “\(folder)” cannot be created: \(error)")
        }
    }
}

/// The options of `download` alone.
struct DownloadCommandOptions: Sendable {
    /// The directory of the files; `nil` for the working directory.
    var folder: String?
    /// Files with lists of URLs; `-` is standard input.
    var lists: [String] = []
    /// The maximum number of connections for a file.
    var segments = 4
    /// The maximum number of concurrent files.
    var fileLimit = 3
    /// The maximum number of concurrent files from one host.
    var fileLimitPerHost = 2
    /// The checksum of the file of the one URL.
    var checksum: Checksum?
    /// Bytes a second, for all files together.
    var rate: Int?
    /// The treatment of a file that exists.
    var collision = DownloadOptions.Collision.fail
    /// The treatment of the bytes of an earlier run.
    var resumption = DownloadOptions.Resumption.automatic
    var preservesModificationTime = false
    /// The directory of a queue that outlives the program.
    var stateFolder: String?
    var stallTimeout: Duration?
    /// The maximum number of consecutive failures; `nil` for the default of downloads.
    var retryCount: Int?
    var retryDelay: Duration?
}

/// Gives the credentials of a command line to downloads of a queue: to those that it names, or to all if it names none.
///
/// They are not written to the queue's directory: each run gets them anew.
struct DownloadCredentials: Sendable {
    /// The options of the URLs that the command line names once.
    private let named: [String: DownloadOptions]
    /// All URLs that it names.
    private let urls: Set<String>
    private let group: TransferOptions
    private let lines: HeaderLines
    private let caller: CredentialPlan

    private static let secrets: [HTTPField.Name] = [.authorization, .proxyAuthorization, .cookie]

    /// The credentials of a command line with these downloads.
    init(_ plans: [DownloadPlan], _ group: TransferOptions, _ caller: CredentialPlan) throws(UsageError) {
        let alike = Dictionary(grouping: plans) { $0.url.absoluteForm }
        named = alike.compactMapValues { $0.count == 1 ? $0.first?.options : nil }
        urls = Set(alike.keys)
        self.group = group
        self.caller = caller
        lines = try DownloadPlan.fields(of: group)
    }

    /// Gives a download its credentials.
    /// - Returns: Whether it is one of the command line's own, which may also use its cookies and its certificate.
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
        // A new download has them already.
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
